"""Small helpers on vectors: precision in and out, safe scales, the l2 norm without overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array
from atomlearn.core.interfaces.arrays import power_of_two


def to_float64(w: NDArray[Any]) -> Array:
    """Return ``w`` as a contiguous one-dimensional float64 array (itself if it is one)."""
    result = np.ascontiguousarray(w, dtype=np.float64)
    if result.ndim != 1:
        raise ValueError(
            f"a vector of shape (n,) is expected, got shape {result.shape}; pass w.ravel()"
        )
    return result


def l2_norm(w: Array) -> float:
    """Return ||w||_2 without overflow or underflow of the squares.

    If the sum of squares is very large or small, w is scaled by a power of two, which is exact.
    """
    with np.errstate(over="ignore"):
        square = float(np.dot(w, w))
    if 1e-200 < square < 1e200:
        return math.sqrt(square)
    scale = power_of_two(w)
    scaled = w / scale
    return scale * math.sqrt(float(np.dot(scaled, scaled)))
