"""Columns of small codes: sums of v over the entries of each code, and thermometer scores.

Codes of column j are smaller than starts[j + 1] - starts[j], at most 256; they, and the rows of
compressed columns, must have been checked: they are not checked again. Codes denote levels
that entries are rounded to. Where columns come one after the other, ``values[begin[p] :
begin[p + 1]]`` are the entries of column p.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions
from atomlearn._kernels.dense import in_lanes

Bytes = NDArray[np.uint8]

#: A code is a byte.
MOST_LEVELS = 256
#: And so are two codes of a pair.
MOST_PAIR_LEVELS = 16


class CodedColumns(NamedTuple):
    """Coded columns of ``n_rows`` rows.

    codes : (n_entries,) uint8, column after column; indices, indptr : their rows, as in CSC, or
    None for dense columns of n_rows codes each; starts : (n_columns + 1,) int64, column j has
    starts[j + 1] - starts[j] levels.
    """

    codes: Bytes
    indices: Indices | None
    indptr: Indices | None
    n_rows: int
    starts: Positions

    @property
    def n_columns(self) -> int:
        """Number of coded columns."""
        return self.starts.size - 1

    @property
    def levels(self) -> Positions:
        """Number of levels of each column."""
        return np.diff(self.starts)


def code_histograms(x: CodedColumns, v: Array) -> Array:
    """sum of v over the entries of each code, column after column: float64 of shape (starts[-1],).

    O(entries). For v of shape (n_rows, m), as in all sums here, those of each column of it,
    (..., m), in one reading.
    """
    return _sums(_native.code_histograms, x, v, int(x.starts[-1]))


def table_scores(x: CodedColumns, tables: Array, begins: Positions, v: Array) -> Array:
    """z = A'v for the columns A that are known at each code, float64.

    Those of coded column j at its codes are tables[begins[j] : begins[j + 1]], code after code.
    Shape (sum of their numbers,). O(entries + tables).
    """
    entries = _checks.weights(tables, "tables", int(begins[-1]))
    sizes = np.diff(begins) // x.levels
    if begins.size != x.starts.size or (sizes * x.levels != np.diff(begins)).any():
        raise ValueError("begins must give each column whole rows, one a level")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    given = *x, entries, begins, offsets
    return _sums(_native.table_scores, given, v, int(offsets[-1]))


def thermometer_scores(x: CodedColumns, values: Array, zero: Positions, v: Array) -> Array:
    """z = A'v for the thermometer columns A, one between any two neighboring levels, float64.

    values : the levels of all columns, one after the other, increasing in each; zero : (n_columns,)
    the code whose entries are all zero. Column b, of gap = values[b + 1] - values[b], holds
    sqrt(gap) where code > b, for b >= zero, and -sqrt(gap) where code <= b, for b < zero. Shape
    (sum of their levels less one,). O(entries + levels).
    """
    given = *x, values, zero
    return _sums(_native.thermometer_scores, given, v, int(x.starts[-1]) - x.n_columns)


def pair_histograms(
    codes: Bytes, n_levels: int, first: Positions, second: Positions, weights: Array
) -> Array:
    """out[p, a, b] = sum of weights over the rows with codes (a, b) in columns first[p], second[p].

    codes : (n_rows, n_columns) uint8 in Fortran order, below n_levels, at most 16; they must have
    been checked. Shape (len(first), n_levels, n_levels), float64. O(n_rows) a pair.
    """
    if codes.dtype != np.uint8 or codes.ndim != 2 or not codes.flags.f_contiguous:
        raise TypeError("codes must be uint8 of two dimensions in Fortran order")
    if not 1 <= n_levels <= MOST_PAIR_LEVELS:
        raise ValueError(f"n_levels must be between 1 and {MOST_PAIR_LEVELS}, got {n_levels}")
    given = codes.ravel(order="K"), n_levels, first, second
    out = _sums(_native.pair_histograms, given, weights, first.size * n_levels**2)
    return out.reshape(-1, n_levels, n_levels, *out.shape[1:])


def _sums(kernel: Callable[..., None], given: tuple[Any, ...], v: Array, count: int) -> Array:
    """Return ``count`` sums of a kernel, (count,), or (count, m) for m columns of v together."""
    if v.ndim != 2:
        sums = np.empty(count)
        kernel(*given, v, 1, sums)
        return sums
    rows, number = in_lanes(v)
    sums = np.empty((count, rows.shape[1]))
    kernel(*given, rows.reshape(-1), rows.shape[1], sums.reshape(-1))
    return sums[:, :number]


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
    origin: 0 if values reach from below it to above, else the value nearest to it. Else levels
    are its values at these shares of the weight of the other values, or (``uniform``) of its
    range, and the origin. rows : of each entry, None if every column has all rows in order;
    other entries are 0. The count of a column whose range is no finite number is 0, and the first
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
