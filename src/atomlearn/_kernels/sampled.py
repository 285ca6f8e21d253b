"""Products of factors at the positions of a CSR matrix, of that matrix with a factor, and the
ridge regressions of its rows on a factor.

Positions must have passed ``sparse_fault``: they are not looked at again. Shared among threads by
stored entries; every number is computed by one thread, whatever their number.
"""

from __future__ import annotations

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices
from atomlearn._kernels.sparse import compressed


def _rows(value: Data, name: str, n_rows: int | None = None) -> Array:
    array = _checks.float_array(value, name, 2)
    if n_rows is not None and array.shape[0] != n_rows:
        raise ValueError(f"{name} must have {n_rows} rows, got shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def sampled_products(indices: Indices, indptr: Indices, left: Data, right: Data) -> Array:
    """sum_k left_ik right_jk for every stored position (i, j), float64 of shape (len(indices),).

    ``indices`` lie in [0, len(right)). O(len(indices) k).
    """
    index, pointer = compressed(indices, indptr)
    a, b = _rows(left, "left", pointer.size - 1), _rows(right, "right")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"left and right must have as many columns, got shapes {a.shape} and {b.shape}"
        )
    out = np.empty(index.size)
    _native.sampled_products(index, pointer, a, b, out)
    return out


def matrix_product_csr(data: Array, indices: Indices, indptr: Indices, right: Data) -> Array:
    """X R for X in CSR and R (n_columns, k), float64 of shape (n_rows, k). O(nnz k)."""
    index, pointer = compressed(indices, indptr)
    values = _checks.weights(data, "data", index.size)
    b = _rows(right, "right")
    out = np.empty((pointer.size - 1, b.shape[1]))
    _native.sparse_times_rows(values, index, pointer, b, out)
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
    index, pointer = compressed(indices, indptr)
    b, out = _rows(factor, "factor"), _rows(current, "current", pointer.size - 1).copy()
    if out.shape[1] != b.shape[1]:
        raise ValueError(
            f"factor and current must have as many columns, got shapes {b.shape} and {out.shape}"
        )
    if not amount > 0.0:
        raise ValueError(f"amount must be positive, got {amount}")
    places = np.empty(0, dtype=index.dtype)
    if order is not None:
        places = np.ascontiguousarray(order, dtype=index.dtype)
        if places.shape != index.shape:
            raise ValueError(f"order must have {index.size} entries, got shape {places.shape}")
    g = _checks.weights(slope, "slope", index.size)
    h = _checks.weights(curvature, "curvature", index.size)
    _native.factor_ridge(index, pointer, places, g, h, b, float(amount), out)
    return out
