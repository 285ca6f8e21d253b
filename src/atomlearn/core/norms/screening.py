"""Safe screening: which coordinates no vector aligned with z* can use, z* known to some error.

Alignment, <z*, w> = gauge°(z*) gauge(w), makes w a positive combination of atoms a that are best
for z*: <a, z*> = gauge°(z*) (a combination of anything less would fall short). So a coordinate is
out when no best atom has it, and each norm knows its best atoms:

- l1 and groups: the groups with ||z_g*||_2 / weight_g = gauge°(z*).
- k-support: a best atom is z_I* / ||z_I*|| for a set I of k coordinates (or groups) of largest
  magnitude, so that |z_j*| is at least the k-th largest magnitude.

Of z* intervals are known, ``least`` <= |z_j*| <= ``most``. Norms, sums and k-th largest values of
magnitudes grow with each magnitude, so that intervals carry over. Ndiaye, Fercoq, Gramfort, Salmon
(2017), Gap safe screening rules for sparsity enforcing penalties, JMLR 18(128), for l1 and groups;
the rule for k-support is proved in docs/concepts.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.norm import Mask

Array = NDArray[np.float64]

#: Bounds are compared as if they were off by this fraction: sums over groups are rounded.
ROUNDED = 1e-12


def least(z: Array, error: Array) -> Array:
    """Return the least |z_j*| with |z_j* - z_j| <= error_j."""
    return np.asarray(np.maximum(np.abs(z) - error, 0.0))


def most(z: Array, error: Array) -> Array:
    """Return the largest |z_j*| with |z_j* - z_j| <= error_j."""
    return np.asarray(np.abs(z) + error)


def reaches_largest(low: Array, high: Array, polar: float) -> Mask:
    """Mark the magnitudes in [low, high] that may be the largest, which is at least ``polar``."""
    return ~(high < (1.0 - ROUNDED) * max(polar, float(low.max(initial=0.0))))


def reaches_kth(low: Array, high: Array, k: int, polar: float) -> Mask:
    """Mark the magnitudes in [low, high] that may be among the k largest.

    ``polar`` bounds the l2 norm of the k largest from below. The k-th largest is at least the k-th
    largest lower bound, and its square at least polar^2 minus the k - 1 largest squared upper
    bounds. O(size) expected.
    """
    k = min(k, low.size)
    if k == 0:
        return np.ones(low.size, dtype=bool)
    level = float(np.partition(low, low.size - k)[low.size - k])
    upper = np.partition(high, low.size - k)[low.size - k + 1 :]
    with np.errstate(over="ignore"):
        rounded = ROUNDED + 4.0 * k * float(np.finfo(np.float64).eps)
        rest = polar * polar * (1.0 - rounded) - float(np.dot(upper, upper))
    if rest > 0 and math.isfinite(rest):
        level = max(level, math.sqrt(rest))
    return ~(high < (1.0 - ROUNDED) * level)
