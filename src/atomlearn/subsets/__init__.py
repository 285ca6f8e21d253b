"""Exactly k columns, or k groups of columns: the best ones, with a proof over all subsets."""

from atomlearn.subsets.solve import solve_subset, subset_path

__all__ = [
    "solve_subset",
    "subset_path",
]
