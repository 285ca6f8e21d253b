"""Problems over matrices: the door of the wing.

Norms of matrices are in ``atomlearn.norms``, designs in ``atomlearn.designs``, the solver in
``atomlearn.solvers``; here is what is made of them as the papers and estimators write it: matrix
pursuit, sparse principal components, sparse plus low rank, several targets at once.
"""

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
