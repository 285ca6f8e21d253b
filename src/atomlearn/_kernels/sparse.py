"""Products with CSR and CSC arrays, shared among threads by stored entries.

The arrays must have passed ``sparse_fault``: indices are not looked at again.
"""

from __future__ import annotations

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices


def sparse_fault(indices: Indices, indptr: Indices, n_minor: int) -> str | None:
    """Return what is wrong with the positions of compressed arrays, None where nothing is."""
    index, pointer = compressed(indices, indptr)
    if pointer[0] != 0:
        return f"indptr does not start with 0 ({pointer[0]} at position 0)"
    falls = np.flatnonzero(pointer[1:] < pointer[:-1])
    if falls.size:
        return f"indptr decreases ({pointer[falls[0] + 1]} at position {falls[0] + 1})"
    if pointer[-1] != index.size:
        return f"indptr ends with {pointer[-1]}, but {index.size} entries are stored"
    if index.size and (int(index.min()) < 0 or int(index.max()) >= n_minor):
        place = int(np.flatnonzero((index < 0) | (index >= n_minor))[0])
        return f"an index out of range ({index[place]} at position {place})"
    return None


def compressed(indices: Indices, indptr: Indices) -> tuple[Indices, Indices]:
    """Return the arrays of positions as they are, or say what is wrong with their types."""
    index = _checks.index_array(indices, "indices")
    pointer = _checks.index_array(indptr, "indptr")
    if index.dtype != pointer.dtype:
        raise TypeError(
            f"indices and indptr must have one type, got {index.dtype} and {pointer.dtype}; "
            "convert one with astype"
        )
    if pointer.size == 0:
        raise ValueError("indptr must have at least one entry, got none")
    return index, pointer


def _arrays(data: Data, indices: Indices, indptr: Indices) -> tuple[Data, Indices, Indices]:
    values = _checks.float_array(data, "data", 1)
    index, pointer = compressed(indices, indptr)
    if not values.flags.c_contiguous:
        raise ValueError("data must be contiguous; pass np.ascontiguousarray(...)")
    if not pointer[-1] <= values.size or values.size != index.size:
        raise ValueError(
            f"data and indices must both hold the {pointer[-1]} entries that indptr announces, "
            f"got {values.size} and {index.size}"
        )
    return values, index, pointer


def sparse_dots(
    data: Data, indices: Indices, indptr: Indices, v: Data, squared: bool = False
) -> Array:
    """sum_e v_e x_me (or x_me^2) of each stored vector m: X'v for CSC, X v for CSR."""
    arrays = _arrays(data, indices, indptr)
    out = np.empty(arrays[2].size - 1)
    _native.sparse_product(*arrays, True, squared, _checks.weights(v, "v", np.size(v)), out)
    return out


def sparse_sums(
    data: Data, indices: Indices, indptr: Indices, v: Data, size: int, squared: bool = False
) -> Array:
    """sum_m v_m x_m (or x_m^2) of the stored vectors, (size,): X v for CSC, X'v for CSR."""
    arrays = _arrays(data, indices, indptr)
    weights, out = _checks.weights(v, "v", arrays[2].size - 1), np.empty(size)
    _native.sparse_product(*arrays, False, squared, weights, out)
    return out


def weighted_squares_csr(
    data: Data, indices: Indices, indptr: Indices, weights: Data, n_columns: int
) -> Array:
    """sum_i c_i x_i x_i' over the rows x_i of X in CSR, float64 (n_columns, n_columns).

    X'diag(c)X, in sum_i nnz(x_i)^2 / 2 additions; rows of weight 0 are skipped. No row may name a
    column twice.
    """
    arrays = _arrays(data, indices, indptr)
    factors = _checks.weights(weights, "weights", arrays[2].size - 1)
    out = np.empty((n_columns, n_columns), order="F")
    _native.sparse_gram(*arrays, factors, out)
    return out


def pair_sums_csc(
    data: Data, indices: Indices, indptr: Indices, first: object, second: object, v: Data
) -> Array:
    """sum_i v_i x_ij x_ik for each pair (j, k) of columns of X in CSC, float64 (len(first),).

    Rows must be sorted within each column, without duplicates. The sum of a pair is the same to
    the last bit whichever others are asked for, and in either order.
    """
    arrays = _arrays(data, indices, indptr)
    left, right = _checks.pairs(first, second, arrays[2].size - 1)
    out = np.empty(left.size)
    if left.size:
        _native.sparse_pairs(*arrays, left, right, _checks.weights(v, "v", np.size(v)), out)
    return out
