"""Products of factors at the positions of a CSR matrix, and of that matrix with a factor.

And the ridge regressions of its rows on a factor. Positions must have passed ``sparse_fault``: they
are not looked at again. Shared among threads by stored entries; every number is computed by one
thread, whatever their number.
"""

from __future__ import annotations

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices
from atomlearn._kernels.threads import load_blas


def sampled_products(indices: Indices, indptr: Indices, left: Data, right: Data) -> Array:
    """sum_k left_ik right_jk for every stored position (i, j), float64 of shape (len(indices),).

    ``indices`` lie in [0, len(right)). O(len(indices) k).
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
    h >= 0 of sample ``order``[e], a permutation (e itself where it is None). For the squared loss
    that is the ridge regression of row i on the factor. amount > 0.
    O(len(indices) r^2 + n_rows r^3) for r columns; 8 r^2 bytes a thread beside the result.
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
