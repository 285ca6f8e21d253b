"""Rounding of products: how far the answers of a design may be from those of its array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns


def roundings(shape: tuple[int, ...]) -> float:
    """Return (n + p + 20) eps: sums over rows or columns of an array, and some more."""
    return float((sum(shape) + 20) * np.finfo(np.float64).eps)


def in_float64(entries: NDArray[Any]) -> NDArray[np.float64]:
    """Return the entries of a block as float64; float32 data may stay float32 there."""
    assert entries.dtype in (np.float32, np.float64)
    return entries.astype(np.float64)


def assert_within(actual: NDArray[np.float64], expected: Array, bound: Array | float) -> None:
    """Assert |actual - expected| <= bound entry by entry, with the worst entry in the message."""
    actual = np.asarray(actual)
    assert actual.dtype == np.float64
    assert actual.shape == expected.shape
    excess = np.abs(actual - expected) - bound
    assert not (excess > 0).any(), f"worst excess over the rounding bound: {excess.max()}"


def brute_force_top(z: Array, count: int) -> tuple[Columns, Array]:
    """Return the largest magnitudes by sorting all, ties by the smaller index."""
    order = np.lexsort((np.arange(z.size), -np.abs(z)))[:count]
    return order.astype(np.int64), z[order]


def normal(rng: np.random.Generator, size: int) -> Array:
    """Return standard normal numbers."""
    return rng.standard_normal((size,))


def uniform(rng: np.random.Generator, size: int) -> Array:
    """Return numbers between 0 and 1."""
    return rng.uniform(size=(size,))
