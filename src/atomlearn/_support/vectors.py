"""Vectors: precision in and out, the l2 norm without overflow, residuals of projections."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support.arrays import Array, power_of_two


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


def without(columns: Array, basis: Array, curvature: Array) -> Array:
    """Return A - Q (Q'CQ)^+ Q'CA: the residual of A = ``columns`` on Q = ``basis``, in place.

    C is the diagonal matrix of ``curvature`` (n_samples,). The projection is applied twice for
    accuracy.
    """
    weighted = curvature[:, None] * basis
    share = np.linalg.pinv(basis.T @ weighted, rcond=1e-13, hermitian=True) @ weighted.T
    for _ in range(2):
        columns -= basis @ (share @ columns)
    return columns
