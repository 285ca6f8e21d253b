"""Products with CSR and CSC arrays, shared among threads by stored entries.

The arrays must have passed ``sparse_fault``: indices are not checked again. In addition to products
with vectors there are those of factors at the positions of a CSR matrix, of that matrix with a
factor, and the ridge regressions of its rows on a factor. Every number of these is computed by one
thread, whatever their number.
"""

from __future__ import annotations

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions
from atomlearn._kernels.dense import in_lanes
from atomlearn._kernels.threads import load_blas


def sparse_fault(indices: Indices, indptr: Indices, n_minor: int) -> str | None:
    """Return the fault in the positions of compressed arrays, None if there is none."""
    if indptr[0] != 0:
        return f"indptr does not start with 0 ({indptr[0]} at position 0)"
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falls.size:
        return f"indptr decreases ({indptr[falls[0] + 1]} at position {falls[0] + 1})"
    if indptr[-1] != indices.size:
        return f"indptr ends with {indptr[-1]}, but {indices.size} entries are stored"
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= n_minor):
        place = int(np.flatnonzero((indices < 0) | (indices >= n_minor))[0])
        return f"an index out of range ({indices[place]} at position {place})"
    return None


def sparse_dots(
    data: Data, indices: Indices, indptr: Indices, v: Data, squared: bool = False
) -> Array:
    """sum_e v_e x_me (or x_me^2) of each stored vector m: X'v for CSC, X v for CSR."""
    out = np.empty(indptr.size - 1)
    _native.sparse_product(data, indices, indptr, True, squared, v, out)
    return out


def sparse_sums(
    data: Data, indices: Indices, indptr: Indices, v: Data, size: int, squared: bool = False
) -> Array:
    """sum_m v_m x_m (or x_m^2) of the stored vectors, (size,): X v for CSC, X'v for CSR."""
    out = np.empty(size)
    _native.sparse_product(data, indices, indptr, False, squared, v, out)
    return out


def many_csc(data: Data, indices: Indices, indptr: Indices, V: Array) -> Array:
    """X'V for X in CSC, float64 of shape (m, n_columns)."""
    vectors, count = in_lanes(V)
    out = np.zeros((count, indptr.size - 1))
    _native.many_csc(data, indices, indptr, vectors, out)
    return out


def weighted_squares_csr(
    data: Data, indices: Indices, indptr: Indices, weights: Data, n_columns: int
) -> Array:
    """sum_i c_i x_i x_i' over the rows x_i of X in CSR, float64 (n_columns, n_columns).

    X'diag(c)X, in sum_i nnz(x_i)^2 / 2 additions; rows of weight 0 are skipped. No row may name a
    column twice.
    """
    out = np.empty((n_columns, n_columns), order="F")
    _native.sparse_gram(data, indices, indptr, weights, out)
    return out


def pair_sums_csc(
    data: Data, indices: Indices, indptr: Indices, first: Positions, second: Positions, v: Data
) -> Array:
    """sum_i v_i x_ij x_ik for each pair (j, k) of columns of X in CSC, float64 (len(first),).

    Rows must be sorted within each column, without duplicates. The sum of a pair is the same to
    the last bit whichever others are requested, and in either order.
    """
    out = np.empty(first.size)
    _native.sparse_pairs(data, indices, indptr, first, second, v, out)
    return out


def sampled_products(indices: Indices, indptr: Indices, left: Data, right: Data) -> Array:
    """sum_k left_ik right_jk for every stored position (i, j), float64 of shape (len(indices),).

    ``indices`` are in [0, len(right)). O(len(indices) k).
    """
    a = _checks.rows(left, "left", indptr.size - 1, right.shape[1])
    out = np.empty(indices.size)
    _native.sampled_products(indices, indptr, a, _checks.rows(right, "right"), out)
    return out


def matrix_product_csr(data: Array, indices: Indices, indptr: Indices, right: Data) -> Array:
    """X R for X in CSR and R (n_columns, k), float64 of shape (n_rows, k). O(nnz k)."""
    out = np.empty((indptr.size - 1, right.shape[1]))
    values = _checks.weights(data, "data", indices.size)
    _native.sparse_times_rows(values, indices, indptr, _checks.rows(right, "right"), out)
    return out


def factor_ridge(
    indices: Indices,
    indptr: Indices,
    slope: Array,
    curvature: Array,
    factor: Data,
    current: Data,
    amount: float,
    order: Indices | None = None,
) -> Array:
    """One step of Newton for every row a_i: a_i - (sum h b b' + amount)^-1 (sum g b + amount a_i).

    Sums over the stored positions e = (i, j), with b = ``factor``_j, and slope g and curvature
    h >= 0 of sample ``order``[e], a permutation (e itself if it is None). For the squared loss
    that is the ridge regression of row i on the factor. amount > 0.
    O(len(indices) r^2 + n_rows r^3) for r columns; 8 r^2 bytes for each thread in addition to the
    result.
    """
    b = _checks.rows(factor, "factor")
    out = _checks.rows(current, "current", indptr.size - 1, b.shape[1]).copy()
    places = (
        np.empty(0, indices.dtype) if order is None else order.astype(indices.dtype, copy=False)
    )
    if order is not None and order.shape != indices.shape:
        raise ValueError(f"order must have {indices.size} entries, got shape {order.shape}")
    g = _checks.weights(slope, "slope", indices.size)
    h = _checks.weights(curvature, "curvature", indices.size)
    load_blas()
    _native.factor_ridge(indices, indptr, places, g, h, b, float(amount), out)
    return out
