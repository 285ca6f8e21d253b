"""Exactly k columns, or k groups of columns: the best ones, with a proof over all subsets."""

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
