"""Small helpers on vectors: precision in and out, safe scales, the l2 norm without overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array


def to_float64(w: NDArray[Any]) -> Array:
    """Return ``w`` as a contiguous one-dimensional float64 array (itself where it is one)."""
    result = np.ascontiguousarray(w, dtype=np.float64)
    if result.ndim != 1:
        raise ValueError(
            f"a vector of shape (n,) is expected, got shape {result.shape}; pass w.ravel()"
        )
    return result


def power_of_two(w: Array) -> float:
    """Return 2^e with max |w| in [2^e / 2, 2^e); 1 for a zero vector. Dividing by it is exact."""
    largest = float(np.abs(w).max(initial=0.0))
    if not math.isfinite(largest):
        return 1.0
    exponent = math.frexp(largest)[1]
    return math.ldexp(1.0, min(max(exponent, -1021), 1023))


def l2_norm(w: Array) -> float:
    """Return ||w||_2 without overflow or underflow of the squares."""
    plain = float(np.dot(w, w))
    if 1e-200 < plain < 1e200:
        return math.sqrt(plain)
    scale = power_of_two(w)
    scaled = w / scale
    return scale * math.sqrt(float(np.dot(scaled, scaled)))
