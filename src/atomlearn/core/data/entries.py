"""What designs refuse: entries, columns and weights, with the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Design


def refuse_entry(value: Any, row: int, column: int, names: list[str] | None) -> None:
    """Raise ValueError for an entry that is not finite, with its place and the remedy."""
    what = "NaN" if np.isnan(value) else "infinity"
    name = "" if names is None else f", {names[column]!r}"
    raise ValueError(
        f"X contains {what} at (row, column) = ({row}, {column}){name}; impute missing values "
        "(for example with sklearn.impute.SimpleImputer) or leave such rows out"
    )


def check_finite(
    design: Design, names: list[str] | None = None, first: tuple[int, int] = (0, 0)
) -> None:
    """Refuse NaN and infinity, with row and column: one pass without a copy.

    first : where this piece begins in X.
    """
    # A sum is finite only where all its terms are.
    sums = design.scores(np.ones(design.shape[0])).full()
    for column in np.flatnonzero(~np.isfinite(sums)).tolist():
        # The exact test of a suspect: finite entries near 1e308 overflow a sum, too.
        entries = design.gather(np.array([column])).dense()[:, 0]
        bad = np.flatnonzero(~np.isfinite(entries))
        if bad.size:
            refuse_entry(entries[bad[0]], first[0] + int(bad[0]), first[1] + column, names)


def existing_columns(columns: Columns, n_features: int) -> Columns:
    """Return column numbers as int64, any order and repeats allowed, or say which do not exist."""
    columns = np.asarray(columns, dtype=np.int64)
    if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < n_features:
        raise IndexError(
            f"columns must lie in [0, {n_features}), got values from {columns.min()} to "
            f"{columns.max()}"
        )
    return columns


def one_weight_each(weights: Array, n_features: int) -> Array:
    """Return weights as float64 (n_features,), or say what is wrong with their shape."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_features,):
        raise ValueError(f"weights must have shape ({n_features},), got {weights.shape}")
    return weights
