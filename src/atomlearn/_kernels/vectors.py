"""Selection by magnitude, group norms and soft thresholding of one long vector."""

from __future__ import annotations

import math

import numpy as np

from atomlearn._kernels import _checks, _native
from atomlearn._kernels._checks import Array, Data, Positions


def top_magnitude(z: Data, count: int) -> tuple[Positions, Array]:
    """Indices and values of the ``min(count, size)`` largest |z_j|, largest first, ties by index.

    Exact; O(size + count log count) expected. ValueError where z holds NaN.
    """
    array = _checks.vector(z, "z")
    wanted = min(_checks.count(count, "count"), array.size)
    indices, values = np.empty(wanted, dtype=np.int64), np.empty(wanted)
    if wanted and _native.top(array, indices, values):
        raise ValueError("z holds NaN: check the data and the weights it was computed from")
    return indices, values


def top_norm(z: Data, count: int) -> float:
    """sqrt(sum of z_j^2 over the ``count`` largest |z_j|): the polar of the k-support norm."""
    array = _checks.vector(z, "z")
    wanted = min(_checks.count(count, "count"), array.size)
    if wanted == 0:
        return 0.0
    status, norm = _native.norm_of_top(array, wanted)
    if status:
        raise ValueError("z holds NaN: check the data and the weights it was computed from")
    return norm


def group_norms(z: Data, labels: object, n_groups: int) -> Array:
    """sqrt(sum of z_j^2 over labels_j = g) for g = 0, ..., n_groups - 1."""
    array = _checks.vector(z, "z")
    label = np.ascontiguousarray(labels)
    if label.dtype != np.int64 or label.shape != array.shape:
        raise TypeError(
            f"labels must be int64 of shape {array.shape}, got {label.dtype} of shape {label.shape}"
        )
    out = np.empty(_checks.count(n_groups, "n_groups"))
    if _native.norms_of_groups(array, label, out):
        raise ValueError(f"labels must lie in [0, {n_groups})")
    return out


def soft_threshold(v: Data, threshold: float) -> Data:
    """sign(v_j) max(|v_j| - threshold, 0), in the precision of v."""
    array = _checks.vector(v, "v")
    if not threshold >= 0 or math.isinf(threshold):
        raise ValueError(f"threshold must be finite and >= 0, got {threshold!r}")
    out = np.empty_like(array)
    _native.threshold(array, float(threshold), out)
    return out
