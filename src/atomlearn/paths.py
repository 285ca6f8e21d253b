"""Paths: grids of levels, warm-started solutions along them, and cross-validation."""

from atomlearn.core.paths.cross_validation import CrossValidation, cross_validate
from atomlearn.core.paths.ends import (
    End,
    ExplainedDeviance,
    NoImprovement,
    NumberOfFeatures,
)
from atomlearn.core.paths.folds import held_out_loss
from atomlearn.core.paths.levels import largest_useful_level, level_grid
from atomlearn.core.paths.path import PathResult, path, path_of
from atomlearn.core.paths.settings import Settings

__all__ = [
    "CrossValidation",
    "End",
    "ExplainedDeviance",
    "NoImprovement",
    "NumberOfFeatures",
    "PathResult",
    "Settings",
    "cross_validate",
    "held_out_loss",
    "largest_useful_level",
    "level_grid",
    "path",
    "path_of",
]
