"""Designs: the data matrix X wherever it lives, asked for scores z = X'v and for columns."""

from atomlearn.core.data.blocks import DenseBlock, SparseBlock
from atomlearn.core.data.centered import CenteredBlock
from atomlearn.core.data.convert import as_design, feature_names, is_opened
from atomlearn.core.data.dense import DenseDesign
from atomlearn.core.data.lifted import Lifted, RepeatedBlock
from atomlearn.core.data.moments import from_moments
from atomlearn.core.data.parts import ColumnSubset, RowSubset, part_of
from atomlearn.core.data.scores import ConcatenatedScores, ShiftedScores
from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.data.standardized import Standardized, centered
from atomlearn.core.data.wrappers import Concatenated, Counted
from atomlearn.core.interfaces.forwarding import Forwarding
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.maps.additive import Additive, AdditiveMap
from atomlearn.maps.anova import Anova, AnovaMap
from atomlearn.maps.cubic import Cubic
from atomlearn.maps.feature_map import FeatureMap, Inputs, MappedDesign, map_of
from atomlearn.maps.features import FEATURES
from atomlearn.maps.kernels import KernelMaps, KernelOn, Kernels, kernel_grid
from atomlearn.maps.levels import nearest
from atomlearn.maps.pairs.polynomial import Polynomial, PolynomialMap
from atomlearn.maps.pairs.scores import PolynomialScores
from atomlearn.maps.terms import CodedBlock
from atomlearn.matrices.designs.base import as_matrix_design
from atomlearn.matrices.designs.entries import Entries
from atomlearn.matrices.designs.identity import Identity
from atomlearn.matrices.designs.tasks import Tasks
from atomlearn.storage.device.on_device import OnDevice, RecheckedScores
from atomlearn.storage.spread.distributed import Dask
from atomlearn.storage.spread.sites import Site, Sites
from atomlearn.storage.spread.waiting import LostDataError
from atomlearn.storage.store.on_disk import OnDisk
from atomlearn.storage.store.plink import PlinkBed, Variants, read_variants
from atomlearn.storage.store.store_file import StoreError

__all__ = [
    "FEATURES",
    "Additive",
    "AdditiveMap",
    "Anova",
    "AnovaMap",
    "ArrayScores",
    "CenteredBlock",
    "CodedBlock",
    "ColumnSubset",
    "Concatenated",
    "ConcatenatedScores",
    "Counted",
    "Cubic",
    "Dask",
    "DenseBlock",
    "DenseDesign",
    "Entries",
    "FeatureMap",
    "Forwarding",
    "Identity",
    "Inputs",
    "KernelMaps",
    "KernelOn",
    "Kernels",
    "Lifted",
    "LostDataError",
    "MappedDesign",
    "OnDevice",
    "OnDisk",
    "PlinkBed",
    "Polynomial",
    "PolynomialMap",
    "PolynomialScores",
    "RecheckedScores",
    "RepeatedBlock",
    "RowSubset",
    "ShiftedScores",
    "Site",
    "Sites",
    "SparseBlock",
    "SparseDesign",
    "Standardized",
    "StoreError",
    "Tasks",
    "Variants",
    "as_design",
    "as_matrix_design",
    "centered",
    "feature_names",
    "from_moments",
    "is_opened",
    "kernel_grid",
    "map_of",
    "nearest",
    "part_of",
    "read_variants",
]
