"""Problem and regularizer: what a solver is given."""

from atomlearn.core.problem.problem import Problem, Regularizer, check_weight, positive

__all__ = ["Problem", "Regularizer", "check_weight", "positive"]
