"""Problems over matrices as the papers and estimators write them, in the parts of the house."""

from atomlearn.matrices.components import Components, sparse_components
from atomlearn.matrices.pursuit import affinity_of, pursuit
from atomlearn.matrices.robust import decomposition, robust_coordinates
from atomlearn.matrices.tasks import TaskProblem, task_problem

__all__ = [
    "Components",
    "TaskProblem",
    "affinity_of",
    "decomposition",
    "pursuit",
    "robust_coordinates",
    "sparse_components",
    "task_problem",
]
