"""What may reach C++: types, shapes, layout and positions, each refused with its remedy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Data = NDArray[np.floating[Any]]
Indices = NDArray[np.signedinteger[Any]]
Positions = NDArray[np.int64]

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))


def float_array(
    value: Data, name: str, n_dimensions: int, types: tuple[np.dtype[Any], ...] = _FLOATS
) -> Data:
    """Return ``value`` as a plain aligned float32 or float64 array, never a copy."""
    array = np.asarray(value)
    if array.dtype not in types or not array.dtype.isnative:
        raise TypeError(
            f"{name} must be float32 or float64 in native byte order, got {array.dtype}; "
            "convert it with astype(np.float64)"
        )
    if array.ndim != n_dimensions:
        raise ValueError(f"{name} must have {n_dimensions} dimension(s), got shape {array.shape}")
    if not array.flags.aligned:
        raise ValueError(f"{name} is not aligned in memory; pass a copy (np.array(..., copy=True))")
    return array


def vector(value: Data, name: str, size: int | None = None) -> Data:
    """Return a contiguous float32 or float64 vector of the given size; strided ones are copied."""
    array = float_array(value, name, 1)
    if size is not None and array.size != size:
        raise ValueError(f"{name} must have {size} entries, got {array.size}")
    return np.ascontiguousarray(array)


def weights(value: Data, name: str, size: int) -> Array:
    """Return a contiguous float64 vector of the given size."""
    return np.asarray(vector(value, name, size), dtype=np.float64)


def positions(value: object, name: str, limit: int) -> Positions:
    """Return contiguous int64 positions, all within [0, limit)."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(
            f"{name} must be a vector of integers, got {array.dtype} of shape {array.shape}; "
            "use np.flatnonzero for a mask"
        )
    result = np.ascontiguousarray(array, dtype=np.int64)
    if result.size and (result.min() < 0 or result.max() >= limit):
        raise ValueError(
            f"{name} must lie in [0, {limit}), got values from {result.min()} to {result.max()}"
        )
    return result


def optional_positions(value: object | None, name: str, limit: int) -> Positions | None:
    """Return positions, or None for all."""
    return None if value is None else positions(value, name, limit)


def pairs(first: object, second: object, limit: int) -> tuple[Positions, Positions]:
    """Return the positions of the two columns of each pair."""
    left, right = positions(first, "first", limit), positions(second, "second", limit)
    if left.size != right.size:
        raise ValueError(f"first and second must pair up, got {left.size} and {right.size} columns")
    return left, right


def float64_matrix(value: Data, name: str) -> Array:
    """Return a float64 matrix, never a copy."""
    array = float_array(value, name, 2)
    if array.dtype != np.float64:
        raise TypeError(f"{name} must be float64; convert it with astype(np.float64)")
    return np.asarray(array, dtype=np.float64)


def count(value: object, name: str, limit: int | None = None) -> int:
    """Return a whole number >= 1 (and at most ``limit``)."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if number < 1 or (limit is not None and number > limit):
        expected = ">= 1" if limit is None else f"from 1 to {limit}"
        raise ValueError(f"{name} must be {expected}, got {number}")
    return number


def rows_contiguous(array: Data, name: str) -> bool:
    """Return True where rows are contiguous, False where columns are; refuse anything else."""
    n_rows, n_columns = array.shape
    row_stride, column_stride = array.strides
    rows = column_stride == array.itemsize or n_columns <= 1
    columns = row_stride == array.itemsize or n_rows <= 1
    if not (rows or columns) or row_stride % array.itemsize or column_stride % array.itemsize:
        raise ValueError(
            f"{name} must have contiguous rows or contiguous columns, got strides "
            f"{array.strides} for itemsize {array.itemsize}; pass np.ascontiguousarray(...)"
        )
    return rows and not (columns and n_columns <= 1)


def index_array(value: Indices, name: str) -> Indices:
    """Return a contiguous int32 or int64 vector, never a copy."""
    array = np.asarray(value)
    if array.dtype not in _INTEGERS or array.ndim != 1:
        raise TypeError(
            f"{name} must be a vector of int32 or int64, got {array.dtype} of shape {array.shape}"
        )
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise ValueError(f"{name} must be contiguous; pass np.ascontiguousarray(...)")
    return array
