"""Designs: the data matrix X wherever it lives, asked for scores z = X'v and for columns."""

from atomlearn.core.data.convert import as_design
from atomlearn.core.data.moments import from_moments
from atomlearn.core.data.parts import RowSubset
from atomlearn.core.data.standardized import Standardized
from atomlearn.core.data.wrappers import Concatenated
from atomlearn.maps.additive import Additive
from atomlearn.maps.anova import Anova
from atomlearn.maps.cubic import Cubic
from atomlearn.maps.kernels import KernelOn, Kernels, kernel_grid
from atomlearn.maps.pairs.polynomial import Polynomial
from atomlearn.matrices.designs.entries import Entries
from atomlearn.matrices.designs.identity import Identity
from atomlearn.matrices.designs.tasks import Tasks
from atomlearn.storage.device.on_device import OnDevice
from atomlearn.storage.spread.distributed import Dask
from atomlearn.storage.spread.sites import Site, Sites
from atomlearn.storage.spread.waiting import LostDataError
from atomlearn.storage.store.on_disk import OnDisk
from atomlearn.storage.store.plink import PlinkBed
from atomlearn.storage.store.store_file import StoreError

__all__ = [
    "Additive",
    "Anova",
    "Concatenated",
    "Cubic",
    "Dask",
    "Entries",
    "Identity",
    "KernelOn",
    "Kernels",
    "LostDataError",
    "OnDevice",
    "OnDisk",
    "PlinkBed",
    "Polynomial",
    "RowSubset",
    "Site",
    "Sites",
    "Standardized",
    "StoreError",
    "Tasks",
    "as_design",
    "from_moments",
    "kernel_grid",
]
