"""Selection by magnitude from one long vector."""

from __future__ import annotations

import math

import numpy as np

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Positions


def top_magnitude(z: Data, count: int) -> tuple[Positions, Array]:
    """Indices and values of the ``min(count, size)`` largest |z_j|, largest first, ties by index.

    Exact; O(size + count log count) expected. ValueError where z holds NaN.
    """
    array = np.ascontiguousarray(_checks.float_array(z, "z", 1))
    wanted = min(_checks.count(count, "count"), array.size)
    indices, values = np.empty(wanted, dtype=np.int64), np.empty(wanted)
    if wanted and not _native.top(array, indices, values):
        raise ValueError("z holds NaN: check the data and the weights it was computed from")
    return indices, values


def top_norm(z: Data, count: int) -> float:
    """sqrt(sum of z_j^2 over the ``count`` largest |z_j|): the polar of the k-support norm."""
    array = _checks.vector(z, "z")
    wanted = min(_checks.count(count, "count"), array.size)
    if wanted == 0:
        return 0.0
    norm = _native.norm_of_top(array, wanted)
    if math.isnan(norm):
        raise ValueError("z holds NaN: check the data and the weights it was computed from")
    return norm
