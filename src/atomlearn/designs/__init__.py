"""Designs: the data matrix X wherever it lives, asked for scores z = X'v and for columns."""

from atomlearn.designs.additive import Additive, AdditiveScores
from atomlearn.designs.additive_map import AdditiveMap
from atomlearn.designs.anova import Anova, AnovaScores
from atomlearn.designs.anova_map import AnovaMap
from atomlearn.designs.blocks import DenseBlock, SparseBlock
from atomlearn.designs.centered import CenteredBlock
from atomlearn.designs.cluster import LostDataError
from atomlearn.designs.coded_block import CodedBlock
from atomlearn.designs.column_subset import ColumnSubset
from atomlearn.designs.convert import as_design, feature_names, is_opened
from atomlearn.designs.dense import DenseDesign
from atomlearn.designs.distributed import ChunkScores, Dask
from atomlearn.designs.kernel_map import KernelMaps
from atomlearn.designs.kernels import KernelOn, Kernels, kernel_grid
from atomlearn.designs.levels import codes_of, nearest
from atomlearn.designs.lifted import Lifted
from atomlearn.designs.matrices import Complement, Entries, Identity, Tasks, as_matrix_design
from atomlearn.designs.on_device import OnDevice, RecheckedScores
from atomlearn.designs.on_disk import OnDisk
from atomlearn.designs.plink import PlinkBed, Variants, read_variants
from atomlearn.designs.polynomial import Polynomial, PolynomialScores
from atomlearn.designs.repeated import RepeatedBlock
from atomlearn.designs.scores import ArrayScores, ConcatenatedScores, ShiftedScores
from atomlearn.designs.sparse import SparseDesign
from atomlearn.designs.standardized import Standardized, centered
from atomlearn.designs.store_file import StoreError
from atomlearn.designs.wrappers import Concatenated, Counted, RowSubset, SupportsRows

__all__ = [
    "Additive",
    "AdditiveMap",
    "AdditiveScores",
    "Anova",
    "AnovaMap",
    "AnovaScores",
    "ArrayScores",
    "CenteredBlock",
    "ChunkScores",
    "CodedBlock",
    "ColumnSubset",
    "Complement",
    "Concatenated",
    "ConcatenatedScores",
    "Counted",
    "Dask",
    "DenseBlock",
    "DenseDesign",
    "Entries",
    "Identity",
    "KernelMaps",
    "KernelOn",
    "Kernels",
    "Lifted",
    "LostDataError",
    "OnDevice",
    "OnDisk",
    "PlinkBed",
    "Polynomial",
    "PolynomialScores",
    "RecheckedScores",
    "RepeatedBlock",
    "RowSubset",
    "ShiftedScores",
    "SparseBlock",
    "SparseDesign",
    "Standardized",
    "StoreError",
    "SupportsRows",
    "Tasks",
    "Variants",
    "as_design",
    "as_matrix_design",
    "centered",
    "codes_of",
    "feature_names",
    "is_opened",
    "kernel_grid",
    "nearest",
    "read_variants",
]
