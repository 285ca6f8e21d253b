"""Designs whose columns are the entries of a matrix: tasks, the matrix itself, some entries."""

from atomlearn.designs.matrices.complement import Complement
from atomlearn.designs.matrices.entries import Entries
from atomlearn.designs.matrices.identity import Identity
from atomlearn.designs.matrices.reshaped import as_matrix_design
from atomlearn.designs.matrices.score_matrix import MatrixScores, SparseMatrix
from atomlearn.designs.matrices.tasks import Tasks

__all__ = [
    "Complement",
    "Entries",
    "Identity",
    "MatrixScores",
    "SparseMatrix",
    "Tasks",
    "as_matrix_design",
]
