"""Paths: grids of levels, warm-started solutions along them, and cross-validation."""

from atomlearn import designs as _designs  # noqa: F401  registers all that as_design takes
from atomlearn import losses as _losses  # noqa: F401  registers the names of losses
from atomlearn import norms as _norms  # noqa: F401  registers the names of norms
from atomlearn.core.paths.cross_validation import CrossValidation, cross_validate
from atomlearn.core.paths.ends import (
    End,
    ExplainedDeviance,
    NoImprovement,
    NumberOfFeatures,
)
from atomlearn.core.paths.folds import held_out_loss
from atomlearn.core.paths.levels import alpha_grid, largest_useful_alpha
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
    "alpha_grid",
    "cross_validate",
    "held_out_loss",
    "largest_useful_alpha",
    "path",
    "path_of",
]
