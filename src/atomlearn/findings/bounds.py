"""How many false features stability selection lets through, in expectation.

With theta = q / p the share of features a resample selects, and features of a selection
probability of at most theta called low, the expected number of low features selected by B pairs
of complementary halves at the threshold t is at most

    Meinshausen and Buhlmann      theta q / (2 t - 1)
    unimodal                      C(t, B) theta q
"""

from __future__ import annotations

import numpy as np


def meinshausen_buhlmann(q: float, p: int, threshold: float) -> float:
    """Return q^2 / ((2 t - 1) p), infinity for t <= 1/2."""
    return float("inf") if threshold <= 0.5 else q * q / ((2 * threshold - 1) * p)


def unimodal(q: float, p: int, threshold: float, n_pairs: int) -> float:
    """Return C(t, B) q^2 / p, where distributions of low features' frequencies have one mode.

    It asks for t > 1/2 + min(theta^2, 1 / (2 B) + 3 theta^2 / 4) and theta <= 1 / sqrt(3); beyond
    that the bound is Meinshausen and Buhlmann's.
    """
    theta, half = q / p, 1 / (2 * n_pairs)
    least = min(0.5 + theta**2, 0.5 + half + 0.75 * theta**2)
    if theta > 1 / np.sqrt(3) or threshold <= least:
        return meinshausen_buhlmann(q, p, threshold)
    if threshold <= 0.75:
        gap = 2 * threshold - 1 - half
        factor = 1 / (2 * gap) if gap > 0 else float("inf")
    else:
        factor = 4 * (1 - threshold + half) / (1 + 1 / n_pairs)
    return float(min(factor * q * q / p, meinshausen_buhlmann(q, p, threshold)))
