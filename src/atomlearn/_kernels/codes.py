"""Binned columns: histograms of v over the bins, and scores of thermometer-encoded columns.

An entry is stored as a code, the index of the level (bin value) that it is rounded to. The codes of
column j are smaller than starts[j + 1] - starts[j], at most 256. Codes and the row indices of
compressed columns must have been checked; the kernels do not check them again. In concatenated
columns, ``values[begin[p] : begin[p + 1]]`` are the entries of column p.
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

#: Maximum number of levels of a column, since a code is one byte.
MOST_LEVELS = 256
#: Maximum number of levels in pair histograms, since the two codes of a pair share one byte.
MOST_PAIR_LEVELS = 16


class CodedColumns(NamedTuple):
    """Coded columns of ``n_rows`` rows.

    Attributes
    ----------
    codes : Bytes
        (n_entries,) uint8, column after column.
    indices, indptr : Indices, optional
        Their rows, as in CSC, or None for dense columns of n_rows codes each.
    starts : Positions
        (n_columns + 1,) int64, column j has starts[j + 1] - starts[j] levels.
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
    """Return the histogram of each column of ``x``: the sum of v over the rows with each code.

    The histograms are concatenated: float64 of shape (starts[-1],). ``v`` is (n_rows,), or (n_rows,
    m) for m histograms of shape (starts[-1], m) in one pass, as in all functions here. Time
    O(entries).
    """
    return _kernel_sums(_native.code_histograms, x, v, int(x.starts[-1]))


def table_scores(x: CodedColumns, tables: Array, begins: Positions, v: Array) -> Array:
    """Return the scores z = A'v of columns A that are functions of the coded columns ``x``.

    Each coded column j has d_j derived columns. Their values are given by a lookup table
    (n_levels_j, d_j), stored row after row in tables[begins[j] : begins[j + 1]]. ``v`` is (n_rows,)
    or (n_rows, m). The result is float64 of shape (sum_j d_j,) or (sum_j d_j, m). The time is
    O(entries + tables).
    """
    entries = _checks.weights(tables, "tables", int(begins[-1]))
    n_derived = np.diff(begins) // x.levels
    if begins.size != x.starts.size or (n_derived * x.levels != np.diff(begins)).any():
        raise ValueError("begins must give each column whole rows, one a level")
    offsets = np.concatenate([[0], np.cumsum(n_derived)])
    arguments = *x, entries, begins, offsets
    return _kernel_sums(_native.table_scores, arguments, v, int(offsets[-1]))


def thermometer_scores(x: CodedColumns, values: Array, zero: Positions, v: Array) -> Array:
    """Return the scores z = A'v of the thermometer encoding A of the coded columns, float64.

    A coded column with L levels has L - 1 thermometer columns, one for each pair of neighboring
    levels. With gap = values[b + 1] - values[b], thermometer column b is sqrt(gap) in the rows with
    code > b if b >= zero, and -sqrt(gap) in the rows with code <= b if b < zero; other rows are 0.
    The result has shape (starts[-1] - n_columns,). Time O(entries + levels).

    Parameters
    ----------
    x : CodedColumns
    values : (starts[-1],)
        The levels of all columns, concatenated, increasing within a column.
    zero : (n_columns,)
        The code at which all thermometer columns of a coded column are zero.
    v : (n_rows,) or (n_rows, m)
    """
    arguments = *x, values, zero
    return _kernel_sums(_native.thermometer_scores, arguments, v, int(x.starts[-1]) - x.n_columns)


def spline_knots(
    x: CodedColumns, zero: Positions, quantiles: Array, weight: Array
) -> tuple[Positions, Positions]:
    """Return the knots of each column, as numbers of its levels: (knots, starts).

    They are the first level, the levels at which the share of the sample weight reaches each of the
    increasing ``quantiles`` in (0, 1), and the last level, each once. Those of column j are
    knots[starts[j] : starts[j + 1]]. Entries that are not stored have the code zero[j]. Time
    O(entries + levels).

    Parameters
    ----------
    x : CodedColumns
    zero : (n_columns,)
    quantiles : (m,)
    weight : (n_rows,)
    """
    knots = np.empty((x.n_columns, quantiles.size + 2), dtype=np.int64)
    counts = np.empty(x.n_columns, dtype=np.int64)
    _native.spline_knots(*x, zero, quantiles, knots.reshape(-1), counts, weight)
    is_used = np.arange(knots.shape[1]) < counts[:, None]
    return knots[is_used], np.concatenate([[0], np.cumsum(counts)])


def spline_scores(
    x: CodedColumns,
    values: Array,
    zero: Positions,
    knots: tuple[Positions, Positions],
    degree: int,
    v: Array,
    squared: bool = False,
) -> Array:
    """Return the scores z = A'v of columns A that are B-splines of the coded columns ``x``.

    Column c of coded column j is B_c(x_ij) - B_c(origin of j), where B_c are the B-splines of
    ``degree`` with these knots, or of degree L - 1 where j has only L levels. There are n_knots +
    degree - 1 of them. They are computed at the levels in each call, by the recursion of Cox and
    de Boor. The result has the shape (n_splines,), or (n_splines, m). Time O(entries + levels *
    degree^2).

    Parameters
    ----------
    x : CodedColumns
    values : (starts[-1],)
        The levels of all columns, concatenated, increasing within a column.
    zero : (n_columns,)
        The code of the origin of each coded column.
    knots : tuple of arrays
        See ``spline_knots``.
    degree : int, at most 10
    v : (n_rows,) or (n_rows, m)
    squared : bool
        Whether the entries of A are squared.
    """
    n_splines = np.diff(knots[1]) - 1 + np.minimum(degree, x.levels - 1)
    offsets = np.concatenate([[0], np.cumsum(n_splines)])
    arguments = *x, values, zero, *knots, offsets, degree, squared
    return _kernel_sums(_native.spline_scores, arguments, v, int(offsets[-1]))


def pair_histograms(
    codes: Bytes, n_levels: int, first: Positions, second: Positions, weights: Array
) -> Array:
    """Return the weighted contingency table of each pair of columns (first[p], second[p]).

    Entry [p, a, b] is the sum of ``weights`` over the rows with code a in column first[p] and b in
    second[p]. The result is float64 of shape (n_pairs, n_levels, n_levels). Time O(n_rows) per
    pair.

    Parameters
    ----------
    codes : (n_rows, n_columns) uint8, Fortran order
        All smaller than n_levels <= 16; they must have been checked.
    n_levels : int
    first, second : (n_pairs,) int64
    weights : (n_rows,) or (n_rows, m)
    """
    if codes.dtype != np.uint8 or codes.ndim != 2 or not codes.flags.f_contiguous:
        raise TypeError("codes must be uint8 of two dimensions in Fortran order")
    if not 1 <= n_levels <= MOST_PAIR_LEVELS:
        raise ValueError(f"n_levels must be between 1 and {MOST_PAIR_LEVELS}, got {n_levels}")
    arguments = codes.ravel(order="K"), n_levels, first, second
    out = _kernel_sums(_native.pair_histograms, arguments, weights, first.size * n_levels**2)
    return out.reshape(-1, n_levels, n_levels, *out.shape[1:])


def _kernel_sums(
    kernel: Callable[..., None], arguments: tuple[Any, ...], v: Array, count: int
) -> Array:
    """Run a compiled kernel, and return the sums that it computes over the rows of ``v``.

    ``kernel`` takes the ``arguments``, then v by rows, the number of vectors, and the array
    to fill. The result is (count,) for v (n_rows,), and (count, m) for v (n_rows, m).
    """
    if v.ndim != 2:
        sums = np.empty(count)
        kernel(*arguments, v, 1, sums)
        return sums
    # The vectors are padded with vectors of zeros to whole registers; their sums are cut off.
    rows, n_vectors = in_lanes(v)
    sums = np.empty((count, rows.shape[1]))
    kernel(*arguments, rows.reshape(-1), rows.shape[1], sums.reshape(-1))
    return sums[:, :n_vectors]


def find_levels(
    values: Data,
    rows: Indices | None,
    begin: Positions,
    weight: Array,
    shares: Array,
    uniform: bool,
) -> tuple[Array, Positions, Positions]:
    """Return the bin levels of each column: (levels, counts, zero).

    The origin of a column is 0 if its values have both signs, and otherwise its value nearest to
    0. If a column has at most n_bins + 1 distinct values with the origin, these are its levels.
    Otherwise the levels are the origin and the weighted quantiles of the other values at
    ``shares``, or (``uniform``) the points at these shares of the range. Time O(m log m) for a
    column with m entries.

    Parameters
    ----------
    values, begin : arrays
        Concatenated columns: column p has the entries values[begin[p] : begin[p + 1]].
    rows : int, optional
        The row of each entry, or None if every column has all rows in order. Rows that are not
        listed have the value 0.
    weight : (n_rows,)
        Sample weights.
    shares : (n_bins,)
        Quantile levels in [0, 1].
    uniform : bool
        Whether the levels are at equal shares of the range, and no quantiles.

    Returns
    -------
    levels : (n_columns, n_bins + 1)
    counts : (n_columns,)
        The number of levels of each column. If the range of a column is not finite, its count is 0
        and its first two levels are the ends of the range.
    zero : (n_columns,)
        The index of the origin among the levels.
    """
    begins = _checked_begin(values, begin)
    if rows is None and (np.diff(begins) != weight.size).any():
        raise ValueError("columns without rows must have an entry in every row")
    # The kernel fills these arrays, one row or entry for each column.
    levels = np.empty((begins.size - 1, shares.size + 1))
    counts, zero = np.zeros((2, begins.size - 1), dtype=np.int64)
    _native.find_levels(values, rows, begins, weight, shares, uniform, levels.ravel(), counts, zero)
    return levels, counts, zero


def code_columns(
    values: Data, begin: Positions, levels: Array, starts: Positions, out: NDArray[np.uint8]
) -> None:
    """Write into ``out`` the code of each entry: the index of the nearest level of its column.

    Ties go to the lower level.

    Parameters
    ----------
    values, begin : arrays
        Concatenated columns: column p has the entries values[begin[p] : begin[p + 1]].
    levels, starts : arrays
        levels[starts[p] : starts[p + 1]] are the levels of column p, at most 256, increasing.
    out : uint8
        As long as ``values``.
    """
    begins = _checked_begin(values, begin)
    all_levels = _checks.weights(levels, "levels", int(starts[-1]))
    sizes = np.diff(starts)
    if starts.size != begins.size or out.size != values.size:
        raise ValueError("starts must fit the columns, and out the entries")
    if sizes.size and not 1 <= sizes.min() <= sizes.max() <= MOST_LEVELS:
        raise ValueError(f"a column has 1 to {MOST_LEVELS} levels")
    _native.encode_columns(values, begins, all_levels, np.ascontiguousarray(starts), out)


def _checked_begin(values: Data, begin: Positions) -> Positions:
    """Return ``begin`` as a contiguous array; raise if it does not partition ``values``."""
    begins = np.ascontiguousarray(begin)
    if not begins.size or begins[0] or begins[-1] != values.size or (np.diff(begins) < 0).any():
        raise ValueError("begin must divide all values into columns")
    return begins
