"""Products with dense arrays in either order, with float64 sums even for float32 data.

Arrays may be read-only, memory-mapped or sliced, as long as their rows or their columns are
contiguous; they are never copied. ``rows`` picks rows by position, int64, repeats allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Positions

#: Types of entries, also of those in files, that the kernels multiply. All except float64 fit in
#: float32.
STORED_TYPES = tuple(np.dtype(kind) for kind in (np.float32, np.float64, np.float16, np.int8))
#: Number of vectors that fill a register: V is padded with zeros to a multiple of it.
LANES = 8


def scores_dense(
    X: Data, v: Data | None, rows: Positions | None = None, squared: bool = False
) -> Array:
    """Return X'v, or sum_i v_i x_ij^2 if ``squared``, float64 (n_columns,): one pass over X.

    ``v`` has an entry for each of ``rows``, or for all rows of X if ``rows`` is None. If ``v`` is
    None, all its entries are 1.
    """
    if v is None:
        v = np.ones(X.shape[0] if rows is None else rows.size)
    if rows is not None and _has_contiguous_columns(X):
        # Reading whole columns is faster: rows that are not among ``rows`` get the entry 0, and
        # repeated rows the sum of their entries.
        v = np.bincount(rows, v, X.shape[0]).astype(np.float64)
        rows = None
    out = np.empty(X.shape[1])
    _native.dense_product(X, True, squared, v, rows, out)
    return out


def predict_dense(X: Data, w: Data, rows: Positions | None = None) -> Array:
    """Return X w, float64 of shape (n_rows,), or (len(rows),) for some ``rows`` only."""
    if rows is not None and _has_contiguous_columns(X):
        # Reading some entries of each column is slower than reading whole columns.
        return predict_dense(X, w)[rows]
    out = np.empty(X.shape[0] if rows is None else rows.size)
    _native.dense_product(X, False, False, w, rows, out)
    return out


def many_dense(X: Data, V: Array, rows: Positions | None = None) -> Array:
    """Return X'V, float64 of shape (m, n_columns), by one reading of X.

    ``V`` (n_rows, m) has a row for each row of X, or for each of ``rows``.
    """
    vectors, count = in_lanes(V)
    if rows is not None and _has_contiguous_columns(X):
        # Columns are read as a whole, with zeros for the rows that are left out.
        padded_vectors = np.zeros((X.shape[0], vectors.shape[1]))
        np.add.at(padded_vectors, rows, vectors)
        vectors = padded_vectors
        rows = None
    out = np.zeros((count, X.shape[1]))
    _native.many_dense(X, vectors, rows, out)
    return out


def in_lanes(V: Array) -> tuple[Array, int]:
    """Return V (n_rows, count) in C order, with columns of zeros up to whole registers; and count.

    The number of columns becomes a multiple of LANES.
    """
    n_rows, count = V.shape
    width = max(LANES, -(-count // LANES) * LANES)
    if width == count and V.flags.c_contiguous:
        return V, count
    padded = np.zeros((n_rows, width))
    padded[:, :count] = V
    return padded, count


def gather_dense(
    X: Data,
    columns: Positions,
    rows: Positions | None = None,
    dtype: type[np.float32] | type[np.float64] | np.dtype[Any] = np.float64,
) -> NDArray[Any]:
    """Return X[rows][:, columns] in Fortran order, shape (n_rows, len(columns)).

    ``rows`` None: all rows. ``dtype`` is float32 or float64.
    """
    n_rows = X.shape[0] if rows is None else rows.size
    out = np.empty((n_rows, columns.size), dtype=dtype, order="F")
    _native.gather(X, np.ascontiguousarray(columns), rows, out)
    return out


def pair_sums_dense(X: Data, first: Positions, second: Positions, v: Data) -> Array:
    """Return sum_i v_i x_ij x_ik for each pair (j, k) of columns, float64 (n_pairs,).

    Pair number e is (first[e], second[e]), and ``v`` is (n_rows,). Products and sums are float64. X
    must have contiguous columns. The sum of a pair is the same to the last bit whichever others are
    requested.
    """
    out = np.zeros(first.size)
    _native.pair_sums(X, first, second, v, out)
    return out


def _has_contiguous_columns(X: Data) -> bool:
    """Return whether each column of X is contiguous in memory."""
    return bool(X.strides[0] == X.itemsize)


def top_magnitude(z: Data, count: int) -> tuple[Positions, Array]:
    """Return positions and values of the ``count`` largest |z_j|, largest first, ties by position.

    All of them if z has fewer entries. O(size + count log count) expected time. Raise ValueError if
    z holds NaN.
    """
    n_kept = min(count, z.size)
    indices = np.empty(n_kept, dtype=np.int64)
    values = np.empty(n_kept)
    if n_kept and not _native.top(np.ascontiguousarray(z), indices, values):
        raise ValueError("z holds NaN: check the data and the weights it was computed from")
    return indices, values
