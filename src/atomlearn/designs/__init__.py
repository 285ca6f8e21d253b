"""Designs: the data matrix X wherever it lives, asked for scores z = X'v and for columns."""

from atomlearn.designs.blocks import DenseBlock, SparseBlock
from atomlearn.designs.centered import CenteredBlock
from atomlearn.designs.column_subset import ColumnSubset
from atomlearn.designs.convert import as_design, feature_names, is_opened
from atomlearn.designs.dense import DenseDesign
from atomlearn.designs.device.on_device import OnDevice, RecheckedScores
from atomlearn.designs.lifted import Lifted
from atomlearn.designs.maps.additive import Additive, AdditiveScores
from atomlearn.designs.maps.additive_map import AdditiveMap
from atomlearn.designs.maps.anova import Anova, AnovaScores
from atomlearn.designs.maps.anova_map import AnovaMap
from atomlearn.designs.maps.coded_block import CodedBlock
from atomlearn.designs.maps.kernel_map import KernelMaps
from atomlearn.designs.maps.kernels import KernelOn, Kernels, kernel_grid
from atomlearn.designs.maps.levels import codes_of, nearest
from atomlearn.designs.matrices import Complement, Entries, Identity, Tasks, as_matrix_design
from atomlearn.designs.pairs.polynomial import Polynomial
from atomlearn.designs.pairs.scores import PolynomialScores
from atomlearn.designs.repeated import RepeatedBlock
from atomlearn.designs.scores import ArrayScores, ConcatenatedScores, ShiftedScores
from atomlearn.designs.sparse import SparseDesign
from atomlearn.designs.spread.cluster import LostDataError
from atomlearn.designs.spread.distributed import ChunkScores, Dask
from atomlearn.designs.standardized import Standardized, centered
from atomlearn.designs.stored.on_disk import OnDisk
from atomlearn.designs.stored.plink import PlinkBed, Variants, read_variants
from atomlearn.designs.stored.store_file import StoreError
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
