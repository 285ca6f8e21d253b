"""Columns that make up the target exactly, as parts of a total do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns, Design

#: Columns that are looked at (the selected ones where there are more), entries of them, and columns
#: that are named as parts of a total at most.
MOST_COLUMNS, MOST_ENTRIES, MOST_PARTS = 300, 50_000_000, 10


def adding_up(
    design: Design, y: NDArray[Any], selected: Sequence[int], names: Sequence[str], target: str
) -> list[str]:
    """Return a sentence where two or more columns make up a target of numbers exactly.

    By least squares on more rows than columns: a combination that leaves nothing, without columns
    that it does as well without.
    """
    if y.dtype.names is not None or y.ndim != 1 or y.dtype.kind not in "iuf":
        return []
    columns = np.arange(design.shape[1])
    if not design.listable or columns.size > MOST_COLUMNS:
        columns = np.unique(np.asarray(selected, dtype=np.int64)[:MOST_COLUMNS])
    n_rows = design.shape[0]
    if columns.size < 2 or n_rows < columns.size + 10 or n_rows * columns.size > MOST_ENTRIES:
        return []
    X, values = design.gather(columns).dense(), np.asarray(y, dtype=np.float64)
    X, values = X - X.mean(axis=0), values - values.mean()
    spread = X.std(axis=0)
    weights = _exact(X, values)
    if weights is None:
        return []
    parts: Columns = np.flatnonzero(np.abs(weights) * spread > 1e-7 * values.std())
    if parts.size > 3 * MOST_PARTS:
        return []
    for part in parts[::-1]:
        fewer = parts[parts != part]
        if fewer.size and _exact(X[:, fewer], values) is not None:
            parts = fewer
    if not 2 <= parts.size <= MOST_PARTS:
        return []
    found, own = _exact(X[:, parts], values), [names[column] for column in columns[parts]]
    if found is not None and np.abs(found - 1.0).max() <= 1e-6:
        told = f"{' + '.join(own)} = {target}: these columns add up to the target"
    else:
        told = f"{target} can be computed exactly from {', '.join(own)}"
    return [f"{told}; if they are not known before it, leave them out (--drop)"]


def _exact(X: Array, y: Array) -> Array | None:
    """Return the weights of columns that leave nothing of y but rounding, None without such."""
    scale = np.linalg.norm(X, axis=0)
    scale[scale == 0] = 1.0
    weights = np.linalg.lstsq(X / scale, y, rcond=1e-10)[0] / scale
    return weights if np.abs(y - X @ weights).max() <= 1e-7 * np.abs(y).max() else None
