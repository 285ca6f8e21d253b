"""X'V for several vectors in one reading of X."""

from __future__ import annotations

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices

#: Vectors of one register: V is filled up to a multiple of it with zeros.
LANES = 8


def many_dense(X: Data, V: Array, rows: object | None = None) -> Array:
    """X'V, float64 of shape (m, n_columns): one reading of X, which is never copied.

    ``rows`` picks rows by position (repeats allowed). Sums are float64 whatever the precision of X.
    """
    array = _checks.float_array(X, "X", 2)
    contiguous = _checks.rows_contiguous(array, "X")
    subset = _checks.optional_positions(rows, "rows", array.shape[0])
    vectors, count = in_lanes(V, array.shape[0] if subset is None else subset.size)
    if subset is not None and not contiguous:
        spread = np.zeros((array.shape[0], vectors.shape[1]))
        np.add.at(spread, subset, vectors)
        vectors, subset = spread, None
    out = np.zeros((count, array.shape[1]))
    _native.many_dense(array, contiguous, vectors, subset, out)
    return out


def many_csc(data: Data, indices: Indices, indptr: Indices, V: Array) -> Array:
    """X'V for X in CSC, float64 of shape (m, n_columns)."""
    vectors, count = in_lanes(V, np.shape(V)[0])
    out = np.zeros((count, indptr.size - 1))
    _native.many_csc(data, indices, indptr, vectors, out)
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
