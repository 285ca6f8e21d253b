"""Designs: the data matrix X wherever it lives, asked for scores z = X'v and for columns."""

from atomlearn.designs.blocks import DenseBlock, SparseBlock
from atomlearn.designs.convert import as_design
from atomlearn.designs.dense import DenseDesign
from atomlearn.designs.frames import feature_names
from atomlearn.designs.scores import ArrayScores, ConcatenatedScores, ShiftedScores
from atomlearn.designs.sparse import SparseDesign

__all__ = [
    "ArrayScores",
    "ConcatenatedScores",
    "DenseBlock",
    "DenseDesign",
    "ShiftedScores",
    "SparseBlock",
    "SparseDesign",
    "as_design",
    "feature_names",
]
