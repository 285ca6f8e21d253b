"""Exactly k columns, or k groups of columns: the best ones, with a proof over all subsets."""

from atomlearn import designs as _designs  # noqa: F401  registers all that as_design takes
from atomlearn import losses as _losses  # noqa: F401  registers the names of losses
from atomlearn.matrices import tasks as _tasks  # noqa: F401  registers y of several columns
from atomlearn.subsets.norm import BranchNorm
from atomlearn.subsets.result import NearSubset, SubsetRecord, SubsetResult, SubsetStatus
from atomlearn.subsets.solve import solve_subset, subset_path

__all__ = [
    "BranchNorm",
    "NearSubset",
    "SubsetRecord",
    "SubsetResult",
    "SubsetStatus",
    "solve_subset",
    "subset_path",
]
