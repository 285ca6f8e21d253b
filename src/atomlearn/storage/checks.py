"""Checks of what a design is asked for: numbers of columns, and weights of all columns."""

from __future__ import annotations

import numpy as np

from atomlearn.core import Array, Columns


def existing_columns(columns: Columns, n_features: int) -> Columns:
    """Return the numbers ``columns`` as int64, in any order.

    Raises IndexError if one of them is not in [0, n_features).
    """
    columns = np.asarray(columns, dtype=np.int64)
    if columns.size and not 0 <= columns.min() <= columns.max() < n_features:
        raise IndexError(
            f"columns must be in [0, {n_features}), got values from {columns.min()} to "
            f"{columns.max()}"
        )
    return columns


def one_weight_each(weights: Array, n_features: int) -> Array:
    """Return ``weights`` as float64 (n_features,); raise ValueError for another shape."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_features,):
        raise ValueError(f"weights must have shape ({n_features},), got {weights.shape}")
    return weights
