"""X'V for several vectors in one reading of X, all of it or the large entries only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import _checks, _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions

#: Vectors of one register: V is filled up to a multiple of it with zeros.
LANES = 8

_Outcome = tuple[NDArray[np.int64], Array]


class FoundColumns(NamedTuple):
    """columns : (f,) int64, increasing; values : (f, m) their scores.

    ``first`` : the number of the column that is number 0 here.
    """

    columns: Positions
    values: Array
    first: int = 0

    @classmethod
    def joined(cls, parts: Sequence[FoundColumns]) -> FoundColumns:
        """Return those of several pieces of X side by side, which begin at ``first``."""
        return cls(
            np.concatenate([part.columns + part.first for part in parts]),
            np.concatenate([part.values for part in parts]),
        )


def many_dense(
    X: Data, V: Array, rows: object | None = None, *, columns: object | None = None
) -> Array:
    """X'V, float64 of shape (m, n_columns): one reading of X, which is never copied.

    ``rows`` picks rows by position (repeats allowed), ``columns`` columns of an array whose columns
    are contiguous. Sums are float64 whatever the precision of X.
    """
    return _dense(X, V, rows, columns, None)[0]


def found_dense(X: Data, V: Array, bounds: Array, rows: object | None = None) -> FoundColumns:
    r"""The columns with \|z_jk\| >= bounds_k for some vector k, bounds > 0; see ``many_dense``."""
    return _dense(X, V, rows, None, bounds)[1]


def many_csc(
    data: Data, indices: Indices, indptr: Indices, V: Array, *, columns: object | None = None
) -> Array:
    """X'V for X in CSC, float64 of shape (m, n_columns); ``columns`` picks some of them."""
    return _csc((data, indices, indptr), V, columns, None)[0]


def found_csc(
    data: Data, indices: Indices, indptr: Indices, V: Array, bounds: Array
) -> FoundColumns:
    """As ``found_dense`` for X in CSC."""
    return _csc((data, indices, indptr), V, None, bounds)[1]


def many_csr(data: Data, indices: Indices, indptr: Indices, V: Array, n_columns: int) -> Array:
    """X'V for X in CSR, float64 of shape (m, n_columns)."""
    return _csr((data, indices, indptr), V, n_columns, None)[0]


def found_csr(
    data: Data, indices: Indices, indptr: Indices, V: Array, bounds: Array, n_columns: int
) -> FoundColumns:
    """As ``found_dense`` for X in CSR."""
    return _csr((data, indices, indptr), V, n_columns, bounds)[1]


def _dense(
    X: Data, V: Array, rows: object | None, columns: object | None, bounds: Array | None
) -> tuple[Array, FoundColumns]:
    array = _checks.float_array(X, "X", 2)
    contiguous = _checks.rows_contiguous(array, "X")
    subset = _checks.optional_positions(rows, "rows", array.shape[0])
    some = _checks.optional_positions(columns, "columns", array.shape[1])
    if some is not None and contiguous and array.shape[0] > 1:
        raise ValueError("columns are picked where columns are contiguous; pass X.copy(order='F')")
    V, count = in_lanes(V, array.shape[0] if subset is None else subset.size)
    if not contiguous and subset is not None:
        V, subset = _spread(V, subset, array.shape[0]), None
    n_columns = array.shape[1] if some is None else some.size
    out, factors = _wanted(count, V.shape[1], n_columns, bounds)
    picked = subset if contiguous else some
    return _answer(_native.many_dense(array, contiguous, V, count, picked, factors, out), out)


def _csc(
    parts: tuple[Data, Indices, Indices], V: Array, columns: object | None, bounds: Array | None
) -> tuple[Array, FoundColumns]:
    some = _checks.optional_positions(columns, "columns", parts[2].size - 1)
    n_columns = parts[2].size - 1 if some is None else some.size
    V, count = in_lanes(V, np.shape(V)[0])
    out, factors = _wanted(count, V.shape[1], n_columns, bounds)
    found = _native.many_sparse(*parts, True, n_columns, V, count, some, factors, out)
    return _answer(found, out)


def _csr(
    parts: tuple[Data, Indices, Indices], V: Array, n_columns: int, bounds: Array | None
) -> tuple[Array, FoundColumns]:
    V, count = in_lanes(V, parts[2].size - 1)
    out, factors = _wanted(count, V.shape[1], n_columns, bounds)
    found = _native.many_sparse(*parts, False, n_columns, V, count, None, factors, out)
    return _answer(found, out)


def in_lanes(V: Array, n_rows: int) -> tuple[Array, int]:
    """Return V by rows, filled up with zeros to whole registers, and its number of vectors."""
    vectors = _checks.float64_matrix(V, "V")
    if vectors.shape[0] != n_rows:
        raise ValueError(f"V must have {n_rows} rows, got {vectors.shape[0]}")
    count = vectors.shape[1]
    width = max(LANES, -(-count // LANES) * LANES)
    if width == count and vectors.flags.c_contiguous:
        return vectors, count
    padded = np.zeros((n_rows, width))
    padded[:, :count] = vectors
    return padded, count


def _spread(vectors: Array, subset: Positions, n_rows: int) -> Array:
    spread = np.zeros((n_rows, vectors.shape[1]))
    np.add.at(spread, subset, vectors)
    return spread


def _wanted(
    count: int, width: int, n_columns: int, bounds: Array | None
) -> tuple[Array, Array | None]:
    if bounds is None:
        return np.zeros((count, n_columns)), None
    factors = np.zeros(width)
    # A hair more: a score at the bound must not be lost by the rounding of the quotient.
    factors[:count] = (1.0 + 1e-15) / _checks.weights(bounds, "bounds", count)
    return np.zeros((count, 0)), factors


def _answer(found: _Outcome, out: Array) -> tuple[Array, FoundColumns]:
    columns, values = found
    return out, FoundColumns(columns, values[:, : out.shape[0]])
