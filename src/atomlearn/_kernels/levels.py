"""The levels that columns are rounded to, and the codes of their entries.

Columns come one after the other: ``values[begin[p] : begin[p + 1]]`` are the entries of column p.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions
from atomlearn._kernels.codes import MOST_LEVELS


def find_levels(
    values: Data,
    rows: Indices | None,
    begin: Positions,
    weight: Array,
    shares: Array,
    uniform: bool,
) -> tuple[Array, Positions, Positions]:
    """Return the levels of each column, (n_columns, n_bins + 1), their number, and the origin's.

    A column keeps its own values where these are at most ``n_bins`` + 1 = len(shares) + 1 with the
    origin: 0 where values reach from below it to above, else the value nearest to it. Else levels
    are its values at these shares of the weight of what is not the origin, or (``uniform``) of its
    range, and the origin. rows : of each entry, None where every column has all rows in order;
    other entries are 0. Of a column whose range is no finite number the count is 0, and the first
    two levels are its ends. O(entries log entries of a column).
    """
    ends = _ends(values, begin)
    if rows is None and (np.diff(ends) != weight.size).any():
        raise ValueError("columns without rows must have an entry in every row")
    levels = np.empty((ends.size - 1, shares.size + 1))
    counts, zero = np.zeros((2, ends.size - 1), dtype=np.int64)
    _native.find_levels(values, rows, ends, weight, shares, uniform, levels.ravel(), counts, zero)
    return levels, counts, zero


def code_columns(
    values: Data, begin: Positions, levels: Array, starts: Positions, out: NDArray[np.uint8]
) -> None:
    """Write the position of the level nearest to each entry, of two the lower one.

    Those of column p are levels[starts[p] : starts[p + 1]], increasing, at most 256.
    """
    ends = _ends(values, begin)
    own = _checks.weights(levels, "levels", int(starts[-1]))
    sizes = np.diff(starts)
    if starts.size != ends.size or out.size != values.size:
        raise ValueError("starts must fit the columns, and out the entries")
    if sizes.size and not 1 <= sizes.min() <= sizes.max() <= MOST_LEVELS:
        raise ValueError(f"a column has 1 to {MOST_LEVELS} levels")
    _native.encode_columns(values, ends, own, np.ascontiguousarray(starts), out)


def _ends(values: Data, begin: Positions) -> Positions:
    ends = np.ascontiguousarray(begin)
    if not ends.size or ends[0] or ends[-1] != values.size or (np.diff(ends) < 0).any():
        raise ValueError("begin must divide all values into columns")
    return ends
