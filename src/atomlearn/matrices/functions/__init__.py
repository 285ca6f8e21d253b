"""Problems over matrices as the papers and estimators write them, in the parts of the house."""

from atomlearn.matrices.functions.components import Components, sparse_components
from atomlearn.matrices.functions.pursuit import affinity_of, pursuit
from atomlearn.matrices.functions.robust import decomposition, robust_coordinates
from atomlearn.matrices.functions.tasks import TaskProblem, task_problem

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
