"""Problem and regularizer: what a solver is given."""

from atomlearn.core.interfaces.numbers import check_weight
from atomlearn.core.problem.objective import Pricing
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer

__all__ = ["Pricing", "Problem", "Regularizer", "check_weight"]
