"""Columns of small codes: sums of v over the entries of each code, and thermometer scores.

Codes of column j are smaller than starts[j + 1] - starts[j], at most 256; they, and the rows of
compressed columns, must have been checked: they are not looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions
from atomlearn._kernels.many import in_lanes

Bytes = NDArray[np.uint8]

#: A code is a byte.
MOST_LEVELS = 256
#: And so are two codes of a pair.
MOST_PAIR_LEVELS = 16


@dataclass(frozen=True, slots=True)
class CodedColumns:
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


def code_histograms(x: CodedColumns, v: Data, columns: object | None = None) -> Array:
    """sum of v over the entries of each code, column after column, float64.

    ``columns`` : which columns, all where None; shape (sum of their levels,). O(entries). For v of
    shape (n_rows, m), as in all sums here, those of each column of it, (..., m), in one reading.
    """
    subset, vectors = _arguments(x, v, columns)
    ends = np.cumsum(x.levels[subset])
    sums = vectors.sums(int(ends[-1]) if ends.size else 0)
    if sums.size:
        offsets = ends - x.levels[subset]
        _native.code_histograms(*_parts(x), subset, offsets, *vectors.given, sums)
    return vectors.of_each(sums)


def table_scores(
    x: CodedColumns,
    tables: Array,
    begins: Positions,
    v: Data,
    columns: object | None = None,
    squared: bool = False,
) -> Array:
    """z = A'v for the columns A that are known at each code, float64.

    Those of coded column j at its codes are tables[begins[j] : begins[j + 1]], code after code.
    Shape (sum of their numbers,); ``squared`` : of the squares of the entries. O(entries + tables).
    """
    subset, vectors = _arguments(x, v, columns)
    entries = _checks.weights(tables, "tables", int(begins[-1]))
    sizes = np.diff(begins) // x.levels
    if begins.size != x.starts.size or (sizes * x.levels != np.diff(begins)).any():
        raise ValueError("begins must give each column whole rows, one a level")
    ends = np.cumsum(sizes[subset])
    sums = vectors.sums(int(ends[-1]) if ends.size else 0)
    if sums.size:
        parts = *_parts(x), entries, begins, subset, ends - sizes[subset]
        _native.table_scores(*parts, *vectors.given, squared, sums)
    return vectors.of_each(sums)


def thermometer_scores(
    x: CodedColumns, values: Data, zero: Positions, v: Data, columns: object | None = None
) -> Array:
    """z = A'v for the thermometer columns A, one between any two neighboring levels, float64.

    values : the levels of all columns, one after the other, increasing in each; zero : (n_columns,)
    the code whose entries are all zero. Column b, of gap = values[b + 1] - values[b], holds
    sqrt(gap) where code > b, for b >= zero, and -sqrt(gap) where code <= b, for b < zero. Shape
    (sum of their levels less one,). O(entries + levels).
    """
    subset, vectors = _arguments(x, v, columns)
    levels = _thermometer(x, values, zero)
    ends = np.cumsum(x.levels[subset] - 1)
    sums = vectors.sums(int(ends[-1]) if ends.size else 0)
    if sums.size:
        offsets = ends - (x.levels[subset] - 1)
        parts = *_parts(x), *levels, subset, offsets
        _native.thermometer_scores(*parts, *vectors.given, False, sums)
    return vectors.of_each(sums)


def thermometer_norms(x: CodedColumns, values: Data, zero: Positions, v: Data) -> Array:
    """l2 norm of ``thermometer_scores`` over each coded column, without storing them."""
    subset, vectors = _arguments(x, v, None)
    parts = *_parts(x), *_thermometer(x, values, zero), subset, subset
    norms = vectors.sums(subset.size)
    _native.thermometer_scores(*parts, *vectors.given, True, norms)
    return vectors.of_each(norms)


def joint_histogram(first: Bytes, second: Bytes, shape: tuple[int, int], weights: Data) -> Array:
    """out[a, b] = sum of weights over the rows with codes (a, b), float64 of ``shape``."""
    a, b = _bytes(first), _bytes(second)
    factors = _checks.weights(weights, "weights", a.size)
    if a.size != b.size or (a.size and (a.max() >= shape[0] or b.max() >= shape[1])):
        raise ValueError(f"codes must be of one length and below {shape}")
    out = np.empty(shape)
    _native.joint_histogram(a, b, factors, out)
    return out


def pair_histograms(
    codes: NDArray[np.uint8], n_levels: int, first: object, second: object, weights: Data
) -> Array:
    """out[p, a, b] = sum of weights over the rows with codes (a, b) in columns first[p], second[p].

    codes : (n_rows, n_columns) uint8 in Fortran order, below n_levels, at most 16; they must have
    been checked. Shape (len(first), n_levels, n_levels), float64. O(n_rows) a pair.
    """
    if codes.dtype != np.uint8 or codes.ndim != 2 or not codes.flags.f_contiguous:
        raise TypeError("codes must be uint8 of two dimensions in Fortran order")
    if not 1 <= n_levels <= MOST_PAIR_LEVELS:
        raise ValueError(f"n_levels must lie between 1 and {MOST_PAIR_LEVELS}, got {n_levels}")
    i, j = _checks.pairs(first, second, codes.shape[1])
    vectors = _Vectors.of(weights, codes.shape[0])
    sums = vectors.sums(i.size * n_levels**2)
    if sums.size:
        _native.pair_histograms(codes.ravel(order="K"), n_levels, i, j, *vectors.given, sums)
    out = vectors.of_each(sums)
    return out.reshape(-1, n_levels, n_levels, *out.shape[1:])


def _parts(x: CodedColumns) -> tuple[Bytes, Indices | None, Indices | None, int, Positions]:
    return x.codes, x.indices, x.indptr, x.n_rows, x.starts


def _bytes(codes: Bytes) -> Bytes:
    if codes.dtype != np.uint8 or codes.ndim != 1:
        raise TypeError(f"codes must be a vector of uint8, got {codes.dtype} of {codes.shape}")
    return np.ascontiguousarray(codes)


@dataclass(frozen=True, slots=True)
class _Vectors:
    """One vector, or several by rows in whole registers; count : None for the one."""

    rows: Array
    width: int
    count: int | None

    @classmethod
    def of(cls, v: Data, n_rows: int) -> _Vectors:
        if np.ndim(v) != 2:
            return cls(_checks.weights(v, "v", n_rows), 1, None)
        rows, count = in_lanes(np.asarray(v), n_rows)
        return cls(rows.reshape(-1), rows.shape[1], count)

    @property
    def given(self) -> tuple[Array, int]:
        """What kernels take."""
        return self.rows, self.width

    def sums(self, count: int) -> Array:
        """Return room for so many sums of each vector."""
        return np.empty(count * self.width)

    def of_each(self, sums: Array) -> Array:
        """Return the sums, (count,) or (count, m)."""
        return sums if self.count is None else sums.reshape(-1, self.width)[:, : self.count]


def _arguments(x: CodedColumns, v: Data, columns: object | None) -> tuple[Positions, _Vectors]:
    subset = np.arange(x.n_columns) if columns is None else columns
    return _checks.positions(subset, "columns", x.n_columns), _Vectors.of(v, x.n_rows)


def _thermometer(x: CodedColumns, values: Data, zero: Positions) -> tuple[Array, Positions]:
    levels = _checks.weights(values, "values", int(x.starts[-1]))
    origin = _checks.positions(zero, "zero", MOST_LEVELS)
    if origin.size != x.n_columns or (origin >= x.levels).any():
        raise ValueError("zero must hold one code of each column")
    return levels, origin
