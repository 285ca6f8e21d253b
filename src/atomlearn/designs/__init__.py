"""Designs: the data matrix X wherever it lives, asked for scores z = X'v and for columns."""

from atomlearn.designs.blocks import CenteredBlock, DenseBlock, SparseBlock
from atomlearn.designs.column_subset import ColumnSubset
from atomlearn.designs.convert import as_design
from atomlearn.designs.dense import DenseDesign
from atomlearn.designs.frames import feature_names
from atomlearn.designs.lifted import Lifted
from atomlearn.designs.matrices import Complement, Entries, Identity, Tasks, as_matrix_design
from atomlearn.designs.polynomial import Polynomial, PolynomialScores
from atomlearn.designs.repeated import RepeatedBlock
from atomlearn.designs.scores import ArrayScores, ConcatenatedScores, ShiftedScores
from atomlearn.designs.sparse import SparseDesign
from atomlearn.designs.standardized import Standardized, centered
from atomlearn.designs.wrappers import Concatenated, Counted, RowSubset, SupportsRows

__all__ = [
    "ArrayScores",
    "CenteredBlock",
    "ColumnSubset",
    "Complement",
    "Concatenated",
    "ConcatenatedScores",
    "Counted",
    "DenseBlock",
    "DenseDesign",
    "Entries",
    "Identity",
    "Lifted",
    "Polynomial",
    "PolynomialScores",
    "RepeatedBlock",
    "RowSubset",
    "ShiftedScores",
    "SparseBlock",
    "SparseDesign",
    "Standardized",
    "SupportsRows",
    "Tasks",
    "as_design",
    "as_matrix_design",
    "centered",
    "feature_names",
]
