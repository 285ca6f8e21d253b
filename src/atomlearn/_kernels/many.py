"""X'V for several vectors in one reading of X."""

from __future__ import annotations

import numpy as np

from atomlearn._kernels import _checks, _native
from atomlearn._kernels._checks import Array, Data, Indices

#: Vectors of one register: V is filled up to a multiple of it with zeros.
LANES = 8


def many_dense(
    X: Data, V: Array, rows: object | None = None, *, columns: object | None = None
) -> Array:
    """X'V, float64 of shape (m, n_columns): one reading of X, which is never copied.

    ``rows`` picks rows by position (repeats allowed), ``columns`` columns of an array whose columns
    are contiguous. Sums are float64 whatever the precision of X.
    """
    array = _checks.float_array(X, "X", 2)
    contiguous = _checks.rows_contiguous(array, "X")
    subset = _checks.optional_positions(rows, "rows", array.shape[0])
    some = _checks.optional_positions(columns, "columns", array.shape[1])
    if some is not None and contiguous and array.shape[0] > 1:
        raise ValueError("columns are picked where columns are contiguous; pass X.copy(order='F')")
    vectors, count = in_lanes(V, array.shape[0] if subset is None else subset.size)
    if subset is not None and not contiguous:
        spread = np.zeros((array.shape[0], vectors.shape[1]))
        np.add.at(spread, subset, vectors)
        vectors = spread
    out = np.zeros((count, array.shape[1] if some is None else some.size))
    _native.many_dense(array, contiguous, vectors, subset if contiguous else some, out)
    return out


def many_csc(
    data: Data, indices: Indices, indptr: Indices, V: Array, *, columns: object | None = None
) -> Array:
    """X'V for X in CSC, float64 of shape (m, n_columns); ``columns`` picks some of them."""
    some = _checks.optional_positions(columns, "columns", indptr.size - 1)
    vectors, count = in_lanes(V, np.shape(V)[0])
    out = np.zeros((count, indptr.size - 1 if some is None else some.size))
    _native.many_csc(data, indices, indptr, vectors, some, out)
    return out


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
