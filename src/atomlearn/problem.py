"""Problem and regularizer: what a solver is given, and the functions of it that solvers call."""

from atomlearn._support import check_weight
from atomlearn.core.problem.problem import Problem, negative_gradient, optimal_intercept, restrict
from atomlearn.core.problem.proof import Pricing, prove
from atomlearn.core.problem.regularizer import Regularizer

__all__ = [
    "Pricing",
    "Problem",
    "Regularizer",
    "check_weight",
    "negative_gradient",
    "optimal_intercept",
    "prove",
    "restrict",
]
