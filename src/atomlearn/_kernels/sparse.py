"""Products with CSR and CSC arrays, shared among threads by stored entries.

The arrays must have passed ``sparse_fault``: indices are not checked again. A CSC array stores the
columns of X, and a CSR array stores its rows: ``data`` are the values, ``indices`` the row (or
column) of each value, and ``indptr`` the position at which each column (or row) begins.

The last three functions serve the completion of matrices, W = L R' with factors L and R. Each
number of their results is computed by one thread, so it does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions
from atomlearn._kernels.dense import in_lanes
from atomlearn._kernels.threads import load_blas


def sparse_fault(indices: Indices, indptr: Indices, n_minor: int) -> str | None:
    """Return the fault in the positions of a compressed array as a phrase, None if there is none.

    ``indices`` must be in [0, ``n_minor``), and ``indptr`` must rise from 0 to their number.
    """
    if indptr[0] != 0:
        return f"indptr does not start with 0 ({indptr[0]} at position 0)"
    # Name the first position at which the array is wrong.
    decreases = np.flatnonzero(indptr[1:] < indptr[:-1])
    if decreases.size:
        return f"indptr decreases ({indptr[decreases[0] + 1]} at position {decreases[0] + 1})"
    if indptr[-1] != indices.size:
        return f"indptr ends with {indptr[-1]}, but {indices.size} entries are stored"
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= n_minor):
        first = int(np.flatnonzero((indices < 0) | (indices >= n_minor))[0])
        return f"an index out of range ({indices[first]} at position {first})"
    return None


def sparse_dots(
    data: Data, indices: Indices, indptr: Indices, v: Data, squared: bool = False
) -> Array:
    """Return sum_e v_e x_me (or v_e x_me^2) for each stored vector x_m: X'v for CSC, X v for CSR.

    ``data``, ``indices`` and ``indptr`` are the compressed array X. ``squared``: whether its values
    are squared.
    """
    out = np.empty(indptr.size - 1)
    _native.sparse_product(data, indices, indptr, True, squared, v, out)
    return out


def sparse_sums(
    data: Data, indices: Indices, indptr: Indices, v: Data, size: int, squared: bool = False
) -> Array:
    """Return sum_m v_m x_m (or v_m x_m^2) of the stored vectors x_m: X v for CSC, X'v for CSR.

    ``data``, ``indices`` and ``indptr`` are the compressed array X, and ``size`` is the length of a
    stored vector and of the result. ``squared``: whether its values are squared.
    """
    out = np.empty(size)
    _native.sparse_product(data, indices, indptr, False, squared, v, out)
    return out


def many_csc(data: Data, indices: Indices, indptr: Indices, V: Array) -> Array:
    """Return X'V, float64 of shape (m, n_columns), for V (n_rows, m).

    ``data``, ``indices`` and ``indptr`` are X in CSC format.
    """
    vectors, count = in_lanes(V)
    out = np.zeros((count, indptr.size - 1))
    _native.many_csc(data, indices, indptr, vectors, out)
    return out


def weighted_squares_csr(
    data: Data, indices: Indices, indptr: Indices, weights: Data, n_columns: int
) -> Array:
    """Return sum_i c_i x_i x_i' = X'diag(c)X over the rows x_i of X, (n_columns, n_columns).

    ``data``, ``indices`` and ``indptr`` are X in CSR format, and ``weights`` (n_rows,) are c. It
    takes sum_i nnz(x_i)^2 / 2 additions; rows of weight 0 are skipped. No row may name a column
    twice.
    """
    out = np.empty((n_columns, n_columns), order="F")
    _native.sparse_gram(data, indices, indptr, weights, out)
    return out


def pair_sums_csc(
    data: Data, indices: Indices, indptr: Indices, first: Positions, second: Positions, v: Data
) -> Array:
    """Return sum_i v_i x_ij x_ik for each pair (j, k) of columns of X, float64 (n_pairs,).

    ``data``, ``indices`` and ``indptr`` are X in CSC format; pair number e is (first[e],
    second[e]), and ``v`` is (n_rows,). Rows must be sorted within each column, without duplicates.
    The sum of a pair is the same to the last bit whichever others are requested, and in either
    order.
    """
    out = np.empty(first.size)
    _native.sparse_pairs(data, indices, indptr, first, second, v, out)
    return out


def sampled_products(indices: Indices, indptr: Indices, left: Data, right: Data) -> Array:
    """Return the entries (left right')_ij at some positions (i, j), float64 (len(indices),).

    The positions are those of a CSR matrix with ``indices`` and ``indptr``. ``left`` is (n_rows,
    k), and ``right`` (n_columns, k). The work is O(len(indices) k).
    """
    factor_rows = _checks.rows(left, "left", indptr.size - 1, right.shape[1])
    out = np.empty(indices.size)
    _native.sampled_products(indices, indptr, factor_rows, _checks.rows(right, "right"), out)
    return out


def matrix_product_csr(data: Array, indices: Indices, indptr: Indices, right: Data) -> Array:
    """Return X R, float64 of shape (n_rows, k), in O(nnz k) time.

    ``data``, ``indices`` and ``indptr`` are X in CSR format, and ``right`` is R (n_columns, k).
    """
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
    """Return one Newton step for every row of a factor, given the other factor: (n_rows, r).

    Row a_i becomes

        a_i - (sum_e h_e b_j b_j' + amount I)^-1 (sum_e g_e b_j + amount a_i),

    with sums over the stored positions e = (i, j) of row i. For the squared loss the step is the
    ridge regression of row i on the factor.

    Parameters
    ----------
    indices, indptr : int
        The stored positions, as in CSR.
    slope, curvature : (n_stored,)
        First and second derivatives g and h >= 0 of the loss with respect to each prediction
        a_i'b_j.
    factor : (n_columns, r)
        Its rows are b_j.
    current : (n_rows, r)
        Its rows are a_i.
    amount : float > 0
        Weight of the ridge term.
    order : (n_stored,) int, optional
        Position e has slope and curvature number order[e]; None: number e.

    Notes
    -----
    O(n_stored r^2 + n_rows r^3) time; 8 r^2 bytes for each thread in addition to the result.
    """
    factor_rows = _checks.rows(factor, "factor")
    out = _checks.rows(current, "current", indptr.size - 1, factor_rows.shape[1]).copy()
    # The kernel takes an empty array for the identity.
    positions = (
        np.empty(0, indices.dtype) if order is None else order.astype(indices.dtype, copy=False)
    )
    if order is not None and order.shape != indices.shape:
        raise ValueError(f"order must have {indices.size} entries, got shape {order.shape}")
    slopes = _checks.weights(slope, "slope", indices.size)
    curvatures = _checks.weights(curvature, "curvature", indices.size)
    load_blas()
    _native.factor_ridge(
        indices, indptr, positions, slopes, curvatures, factor_rows, float(amount), out
    )
    return out
