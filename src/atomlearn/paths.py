"""Paths: grids of levels, warm-started solutions along them, and cross-validation."""

from atomlearn.core.paths.criteria import information_criterion
from atomlearn.core.paths.cross_validation import cross_validate
from atomlearn.core.paths.ends import ExplainedDeviance, NoImprovement, NumberOfFeatures
from atomlearn.core.paths.levels import alpha_grid, largest_useful_alpha
from atomlearn.core.paths.path import path

__all__ = [
    "ExplainedDeviance",
    "NoImprovement",
    "NumberOfFeatures",
    "alpha_grid",
    "cross_validate",
    "information_criterion",
    "largest_useful_alpha",
    "path",
]
