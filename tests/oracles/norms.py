"""Slow twins of the norms, by enumeration and in exact rational arithmetic. Tests only.

Nothing here shares code or method with the norms: supports are enumerated, patterns of the
scaling vector are enumerated and checked in fractions, and one-dimensional searches are bisections.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def naive_ksupport_polar(z: Array, k: int, groups: Sequence[Sequence[int]] | None = None) -> float:
    """max over every choice of k coordinates (groups) of the l2 norm of z there."""
    parts = [[j] for j in range(z.size)] if groups is None else groups
    choices = combinations(parts, min(k, len(parts)))
    return max(math.hypot(*(z[j] for part in choice for j in part)) for choice in choices)


def naive_ksupport_square(w: Sequence[float] | Array, k: int) -> Fraction:
    """gauge(w)^2 = min over 0 <= d <= 1, sum d = k of sum w_j^2 / d_j, exactly.

    For each number q of largest entries with d = 1 the rest share k - q in proportion to |w_j|;
    the best q among those where no share exceeds 1 is the minimum.
    """
    magnitudes = sorted((abs(Fraction(float(entry))) for entry in w), reverse=True)
    magnitudes = [entry for entry in magnitudes if entry > 0]
    if len(magnitudes) <= k:
        return sum((entry * entry for entry in magnitudes), Fraction(0))
    candidates = []
    for q in range(k):
        rest = sum(magnitudes[q:], Fraction(0))
        if magnitudes[q] * (k - q) <= rest:
            squares = sum((entry * entry for entry in magnitudes[:q]), Fraction(0))
            candidates.append(squares + rest * rest / (k - q))
    return min(candidates)


def naive_ksupport_prox(v: Sequence[float] | Array, k: int, step: float) -> list[Fraction]:
    """argmin_x 1/2 ||x - v||^2 + (step / 2) gauge(x)^2, exactly.

    Enumerates the pattern d = clip(t |v_j| - step, 0, 1): q entries with d = 1 and m between, in
    order of magnitude; the one t with sum d = k that agrees with its own pattern is the answer.
    """
    entries = [Fraction(float(entry)) for entry in v]
    mu = Fraction(float(step))
    order = sorted(range(len(entries)), key=lambda j: -abs(entries[j]))
    nonzero = [j for j in order if entries[j] != 0]
    if len(nonzero) <= k or mu == 0:
        return [entry / (1 + mu) for entry in entries]
    for q in range(k):
        for m in range(k - q, len(nonzero) - q + 1):
            between = nonzero[q : q + m]
            total = sum((abs(entries[j]) for j in between), Fraction(0))
            t = (k - q + mu * m) / total
            d = [min(max(t * abs(entry) - mu, Fraction(0)), Fraction(1)) for entry in entries]
            if sum(d, Fraction(0)) == k:
                return [entry * dj / (dj + mu) for entry, dj in zip(entries, d, strict=True)]
    raise AssertionError("no pattern of the scaling vector agrees with itself")


def naive_elastic_net_polar(z: Array, k: int) -> float:
    """min over a threshold theta of ||S(z, theta)||_2 + sqrt k theta, by golden sections."""

    def cost(theta: float) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(z) - theta, 0))) + math.sqrt(k) * theta

    low, high = 0.0, float(np.abs(z).max(initial=0.0))
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if cost(left) <= cost(right) else (left, high)
    return min(cost(low), cost(0.0), cost(float(np.abs(z).max(initial=0.0))))
