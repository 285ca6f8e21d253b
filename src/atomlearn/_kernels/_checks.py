"""Checks of shapes, on which the C++ code relies; its bindings check types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Data = NDArray[np.floating[Any]]
Indices = NDArray[np.signedinteger[Any]]
Positions = NDArray[np.int64]


def weights(value: Data, name: str, size: int) -> Array:
    """Return ``value`` as a contiguous float64 vector of ``size`` entries.

    ``name`` is the name of the argument for the error, as in all functions here.
    """
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.shape != (size,):
        raise ValueError(f"{name} must have {size} entries, got shape {array.shape}")
    return array


def rows(value: Data, name: str, n_rows: int | None = None, width: int | None = None) -> Array:
    """Return ``value`` as a float64 matrix with contiguous rows, (n_rows, width).

    ``n_rows`` or ``width`` None: any number. ``name`` is the argument for the error.
    """
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.ndim != 2 or n_rows not in (None, len(array)) or width not in (None, array.shape[1]):
        raise ValueError(f"{name} must have shape ({n_rows}, {width}), got {array.shape}")
    return array


def positive_weights(value: Array, name: str, size: int) -> Array:
    """Return ``value`` as a vector of ``size`` positive, finite numbers, ``name`` in errors."""
    array = weights(value, name, size)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"{name} must be positive and finite everywhere")
    return array


def positions(value: Positions, name: str, limit: int) -> Positions:
    """Return ``value`` as contiguous int64 positions in [0, limit), called ``name`` in errors."""
    result = np.ascontiguousarray(value)
    if result.size and not 0 <= result.min() <= result.max() < limit:
        raise ValueError(
            f"{name} must be in [0, {limit}), got values from {result.min()} to {result.max()}"
        )
    return result


def symmetric(gram: Array, size: int) -> Array:
    """Return the symmetric matrix ``gram`` (size, size) with contiguous rows; ValueError if unfit.

    Symmetry itself is not checked. A matrix with contiguous columns is transposed, which makes no
    difference if it is symmetric.
    """
    if gram.shape != (size, size):
        raise ValueError(f"gram must have shape ({size}, {size}), got {gram.shape}")
    matrix = gram if gram.strides[1] == gram.itemsize else gram.T
    if size > 1 and matrix.strides[1] != matrix.itemsize:
        raise ValueError(f"gram must have contiguous rows, got strides {gram.strides}")
    return matrix
