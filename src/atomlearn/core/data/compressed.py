"""Compressed sparse arrays (CSC, CSR): checks, scaling, columns, sums of squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn._support import ranges
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Columns

#: Whether something is a SciPy sparse array or matrix.
is_sparse: Callable[[object], bool] = sp.issparse


def checked_parts(X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return data, indices and indptr of X, a CSC or CSR array; raise ValueError if invalid.

    Indices are int32 or int64, and no index is followed before it has been checked.
    """
    parts = [np.asarray(part) for part in (X.data, X.indices, X.indptr)]
    try:
        for name, part in zip(("indices", "indptr"), parts[1:], strict=True):
            if part.dtype.kind not in "iu":
                raise ValueError(f"{name} must be whole numbers, got {part.dtype}")
        # Indices are int32 if they are already, else int64.
        is_int32 = parts[1].dtype == np.int32 and parts[1].size < 2**31
        data, indices, indptr = (
            parts[0],
            *(part.astype(np.int32 if is_int32 else np.int64, copy=False) for part in parts[1:]),
        )
        # Checked first, and by comparisons, because the differences that SciPy computes may
        # overflow.
        if (indptr != parts[2]).any() or np.less(indptr[1:], indptr[:-1]).any():
            raise ValueError("indptr must not decrease, nor hold values out of range")
        checked = type(X)(X.shape, dtype=X.dtype)
        checked.data = data
        checked.indices = indices
        checked.indptr = indptr
        checked.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(
            f"{X.format.upper()} array of shape {tuple(X.shape)} is broken: {error}; rebuild it "
            "from (row, column, value) triplets with scipy.sparse.coo_array"
        ) from error
    # The arrays may be longer than the number of entries.
    stored = int(indptr[-1])
    data = in_place_or_copied(data[:stored])
    indices = in_place_or_copied(indices[:stored])
    return data, indices, in_place_or_copied(indptr)


def in_place_or_copied(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that kernels can read: itself if contiguous and aligned, else a copy.

    Arrays from network buffers or records may begin at any address.
    """
    return np.require(array, requirements=["C", "A"])


def scaled_columns(X: Any, factors: Array) -> Any:
    """Return X, a CSC or CSR array, with column j multiplied by factors[j], in the same format.

    factors : (n_features,).
    """
    of_columns = X.format == "csc"
    factors_of_entries = np.repeat(factors, np.diff(X.indptr)) if of_columns else factors[X.indices]
    scaled = X.copy()
    scaled.data = (X.data * factors_of_entries).astype(X.dtype)
    return scaled


def weighted_squares(vectors: sp.csr_array, weights: Array) -> Array:
    """Return sum_i w_i x_i x_i' for the rows x_i of ``vectors``, a dense (m, m) array.

    weights : w, of any sign; rows of weight 0 are skipped. Mostly empty rows are multiplied entry
    by entry; others by BLAS, in pieces of bounded size.
    """
    count, size = vectors.shape
    if not size:
        return np.zeros((0, 0))
    if vectors.nnz < LIMITS.dense_from * count * size:
        parts = vectors.data, vectors.indices, vectors.indptr
        return _kernels.weighted_squares_csr(*parts, weights, size)
    # Rows of weight 0 are left out if they are more than a quarter.
    keep = np.flatnonzero(weights)
    if 4 * keep.size <= 3 * weights.size:
        vectors = vectors[keep]
        weights = weights[keep]
        count = keep.size
    result = np.zeros((size, size))
    roots = np.sqrt(np.abs(weights))
    for part in LIMITS.pieces(count, size):
        piece = vectors[part].toarray()
        piece *= roots[part, None]
        # With r_i = sqrt(|w_i|) x_i, the terms r_i r_i' of negative weights w_i are subtracted.
        negative = weights[part] < 0
        if negative.any():
            result -= piece[negative].T @ piece[negative]
            piece = piece[~negative]
        result += piece.T @ piece
    return result


def take_compressed(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], columns: Columns
) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    """Return the columns with these numbers of a CSC array, in their order.

    data, indices, indptr : of the array. The results are the same three of the columns, with
    float64 data.
    """
    starts = indptr[columns].astype(np.int64)
    lengths = indptr[columns + 1].astype(np.int64) - starts
    positions = ranges(starts, lengths)
    pointers = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    return data[positions].astype(np.float64), indices[positions], pointers.astype(indices.dtype)
