"""Products with CSR and CSC arrays, shared among threads by stored entries.

The arrays must have passed ``check_sparse``: indices are not looked at again.
"""

from __future__ import annotations

import numpy as np

from atomlearn._kernels import _checks, _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions

#: What the codes of ``check_sparse`` mean.
SPARSE_FAULTS = {
    0: "no fault",
    1: "indptr does not start with 0",
    2: "indptr decreases",
    3: "indptr does not end with the number of stored entries",
    4: "a negative index",
    5: "an index out of range",
}


def check_sparse(indices: Indices, indptr: Indices, n_major: int, n_minor: int) -> tuple[int, int]:
    """(code, position) of the first fault of compressed arrays; (0, 0) where there is none.

    ``SPARSE_FAULTS`` names the codes; the position is one in indptr (codes 1 to 3) or in indices.
    """
    index, pointer = compressed(indices, indptr)
    if pointer.size != n_major + 1:
        raise ValueError(
            f"indptr must have {n_major + 1} entries for {n_major} rows (CSR) or columns (CSC), "
            f"got {pointer.size}"
        )
    return _native.check(index, pointer, n_minor)


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


def _product(
    arrays: tuple[Data, Indices, Indices],
    size: int,
    weights: Array,
    rows: Positions | None = None,
    *,
    dots: bool,
    squared: bool = False,
) -> Array:
    """Return ``size`` sums: dots of the stored vectors with weights, or weighted sums of them."""
    out = np.empty(size)
    _native.sparse_product(*arrays, dots, squared, weights, rows, out)
    return out


def scores_csc(data: Data, indices: Indices, indptr: Indices, v: Data) -> Array:
    """z_j = sum_i v_i x_ij for X in CSC, float64 of shape (n_columns,)."""
    arrays, weights = _arrays(data, indices, indptr), _checks.weights(v, "v", np.size(v))
    return _product(arrays, arrays[2].size - 1, weights, dots=True)


def squared_norms_csc(
    data: Data, indices: Indices, indptr: Indices, n_rows: int, c: Data | None = None
) -> Array:
    """sum_i c_i x_ij^2 for every column j of X in CSC (c = 1 where None)."""
    arrays = _arrays(data, indices, indptr)
    weights = _checks.weights(np.ones(n_rows) if c is None else c, "c", n_rows)
    return _product(arrays, arrays[2].size - 1, weights, dots=True, squared=True)


def scores_csr(
    data: Data,
    indices: Indices,
    indptr: Indices,
    v: Data,
    n_columns: int,
    *,
    rows: object | None = None,
) -> Array:
    """z_j = sum_i v_i x_ij for X in CSR, float64 of shape (n_columns,).

    ``rows`` picks rows by position; v then runs over ``rows``.
    """
    arrays = _arrays(data, indices, indptr)
    n_rows = arrays[2].size - 1
    subset = _checks.optional_positions(rows, "rows", n_rows)
    weights = _checks.weights(v, "v", n_rows if subset is None else subset.size)
    return _product(arrays, n_columns, weights, subset, dots=False)


def squared_norms_csr(
    data: Data, indices: Indices, indptr: Indices, n_columns: int, c: Data | None = None
) -> Array:
    """sum_i c_i x_ij^2 for every column j of X in CSR (c = 1 where None)."""
    arrays = _arrays(data, indices, indptr)
    n_rows = arrays[2].size - 1
    weights = _checks.weights(np.ones(n_rows) if c is None else c, "c", n_rows)
    return _product(arrays, n_columns, weights, dots=False, squared=True)


def predict_csr(
    data: Data,
    indices: Indices,
    indptr: Indices,
    w: Data,
    *,
    rows: object | None = None,
) -> Array:
    """(X w)_i for X in CSR, float64 of shape (n_rows,) or (len(rows),)."""
    arrays = _arrays(data, indices, indptr)
    n_rows = arrays[2].size - 1
    subset = _checks.optional_positions(rows, "rows", n_rows)
    size = n_rows if subset is None else subset.size
    return _product(arrays, size, _checks.weights(w, "w", np.size(w)), subset, dots=True)


def predict_csc(data: Data, indices: Indices, indptr: Indices, w: Data, n_rows: int) -> Array:
    """(X w)_i for X in CSC, float64 of shape (n_rows,)."""
    arrays = _arrays(data, indices, indptr)
    weights = _checks.weights(w, "w", arrays[2].size - 1)
    return _product(arrays, n_rows, weights, dots=False)


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
