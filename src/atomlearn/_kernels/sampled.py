"""Products of factors at the positions of a CSR matrix, and of that matrix with a factor.

Positions must have passed ``check_sparse``: they are not looked at again. Shared among threads by
stored entries; every number is computed by one thread, whatever their number.
"""

from __future__ import annotations

import numpy as np

from atomlearn._kernels import _checks, _native
from atomlearn._kernels._checks import Array, Data, Indices
from atomlearn._kernels.sparse import compressed


def _rows(value: Data, name: str, n_rows: int | None = None) -> Array:
    array = _checks.float_array(value, name, 2)
    if n_rows is not None and array.shape[0] != n_rows:
        raise ValueError(f"{name} must have {n_rows} rows, got shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def sampled_products(
    indices: Indices, indptr: Indices, left: Data, right: Data, out: Array | None = None
) -> Array:
    """sum_k left_ik right_jk for every stored position (i, j), float64 of shape (len(indices),).

    ``indices`` lie in [0, len(right)); ``out``: where the result goes. O(len(indices) k).
    """
    index, pointer = compressed(indices, indptr)
    a, b = _rows(left, "left", pointer.size - 1), _rows(right, "right")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"left and right must have as many columns, got shapes {a.shape} and {b.shape}"
        )
    if out is None:
        out = np.empty(index.size)
    elif out.shape != index.shape or out.dtype != np.float64 or not out.flags.c_contiguous:
        raise ValueError(
            f"out must be a contiguous float64 vector of {index.size} entries, got {out.dtype} of "
            f"shape {out.shape}; pass np.empty({index.size})"
        )
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
