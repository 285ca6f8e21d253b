"""Designs whose columns are the entries of a matrix: tasks, the matrix itself, some entries."""

from atomlearn.matrices.designs.complement import Complement
from atomlearn.matrices.designs.entries import Entries
from atomlearn.matrices.designs.identity import Identity
from atomlearn.matrices.designs.reshaped import as_matrix_design
from atomlearn.matrices.designs.score_matrix import MatrixScores, SparseMatrix
from atomlearn.matrices.designs.tasks import Tasks

__all__ = [
    "Complement",
    "Entries",
    "Identity",
    "MatrixScores",
    "SparseMatrix",
    "Tasks",
    "as_matrix_design",
]
