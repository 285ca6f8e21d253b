"""Products with dense arrays in either order, with float64 sums even for float32 data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Positions

#: Types of the entries that products take: those of files, too. All but float64 fit in float32.
STORED_TYPES = tuple(np.dtype(kind) for kind in (np.float32, np.float64, np.float16, np.int8))


def scores_dense(X: Data, v: Data, rows: object | None = None) -> Array:
    """z_j = sum_i v_i x_ij, float64 of shape (n_columns,): one pass over X, never a copy.

    ``rows`` picks rows of X by position (repeats allowed); v then runs over ``rows``. X may be
    read-only, memory-mapped or sliced, as long as its rows or its columns are contiguous.
    """
    return _along_rows(X, v, rows, squared=False)


def squared_norms_dense(X: Data, c: Data | None = None, rows: object | None = None) -> Array:
    """sum_i c_i x_ij^2 for every column j (c = 1 where None), float64 of shape (n_columns,)."""
    if c is None:
        c = np.ones(np.shape(X)[0] if rows is None else np.size(np.asarray(rows)))
    return _along_rows(X, c, rows, squared=True)


def predict_dense(X: Data, w: Data, rows: object | None = None) -> Array:
    """(X w)_i = sum_j x_ij w_j, float64 of shape (n_rows,) or (len(rows),)."""
    array, contiguous, subset = _stored(X, rows)
    weights = _checks.weights(w, "w", array.shape[1])
    if subset is not None and not contiguous:
        # Picking entries out of columns is slower than reading them all.
        return _product(array, contiguous, False, weights, None, along_rows=False)[subset]
    return _product(array, contiguous, False, weights, subset, along_rows=False)


def _stored(X: Data, rows: object | None) -> tuple[Data, bool, Positions | None]:
    """Return X, whether its rows are contiguous, and the positions of rows, all checked."""
    array = _checks.float_array(X, "X", 2, STORED_TYPES)
    subset = _checks.optional_positions(rows, "rows", array.shape[0])
    return array, _checks.rows_contiguous(array, "X"), subset


def _along_rows(X: Data, v: Data, rows: object | None, squared: bool) -> Array:
    array, contiguous, subset = _stored(X, rows)
    n_rows = array.shape[0]
    weights = _checks.weights(v, "v", n_rows if subset is None else subset.size)
    if subset is not None and not contiguous:
        spread = np.bincount(subset, weights, minlength=n_rows).astype(np.float64, copy=False)
        out = _product(array, contiguous, squared, spread, None, along_rows=True)
        if np.isfinite(out).all():  # else a value outside of ``rows`` may have spoiled it
            return out
        array, subset = np.asfortranarray(array[subset]), None
    return _product(array, contiguous, squared, weights, subset, along_rows=True)


def _product(
    array: Data,
    contiguous: bool,
    squared: bool,
    weights: Array,
    subset: Positions | None,
    along_rows: bool,
) -> Array:
    n_rows = array.shape[0] if subset is None else subset.size
    out = np.empty(array.shape[1] if along_rows else n_rows)
    dots = contiguous is not along_rows
    _native.dense_product(array, contiguous, dots, squared, weights, subset, out)
    return out


def gather_dense(
    X: Data,
    columns: object,
    rows: object | None = None,
    dtype: type[np.float32] | type[np.float64] | np.dtype[Any] = np.float64,
) -> NDArray[Any]:
    """X[rows][:, columns] in Fortran order, shape (n_rows, len(columns)), float32 or float64."""
    array = _checks.float_array(X, "X", 2)
    contiguous = _checks.rows_contiguous(array, "X")
    wanted = _checks.positions(columns, "columns", array.shape[1])
    subset = _checks.optional_positions(rows, "rows", array.shape[0])
    n_rows = array.shape[0] if subset is None else subset.size
    out = np.empty((n_rows, wanted.size), dtype=dtype, order="F")
    if out.size:
        _native.gather(array, contiguous, wanted, subset, out)
    return out


def pair_sums_dense(X: Data, first: object, second: object, v: Data) -> Array:
    """sum_i v_i x_ij x_ik for each pair (j, k) of columns, float64 of shape (len(first),).

    Products and sums are float64. X must have contiguous columns. The sum of a pair is the same
    to the last bit whichever others are asked for.
    """
    array = _checks.float_array(X, "X", 2)
    if array.shape[0] > 1 and array.strides[0] != array.itemsize:
        raise ValueError(
            f"X must have contiguous columns, got strides {array.strides}; pass "
            "np.asfortranarray(X)"
        )
    left, right = _checks.pairs(first, second, array.shape[1])
    weights = _checks.weights(v, "v", array.shape[0])
    out = np.zeros(left.size)
    if left.size and array.shape[0]:
        _native.pair_sums(array, left, right, weights, out)
    return out
