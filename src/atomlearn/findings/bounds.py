"""How many false features stability selection lets through, in expectation.

With theta = q / p the share of features a resample selects, and features of a selection
probability of at most theta called low, the expected number of low features selected by B pairs
of complementary halves at the threshold t is at most

    Meinshausen and Buhlmann      theta q / (2 t - 1)
    unimodal                      C(t, B) theta q
    r-concave                     p min(D(theta^2, 2 t - 1, B, -1/2), D(theta, t, 2 B, -1/4))
"""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array


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


def r_concave(q: float, p: int, threshold: float, n_pairs: int) -> float:
    """Return p min(D(theta^2, 2 t - 1, B, -1/2), D(theta, t, 2 B, -1/4))."""
    theta = q / p
    pairs = largest_tail(theta**2, 2 * threshold - 1, n_pairs, -0.5)
    single = largest_tail(theta, threshold, 2 * n_pairs, -0.25)
    return float(p * min(pairs, single))


def largest_tail(mean: float, least: float, n: int, r: float) -> float:
    """Return the largest P(X >= least) of an r-concave X on 0, 1/n, ..., 1 with E X <= mean.

    A distribution f is r-concave if f^r is convex (r < 0) along its support. The extreme ones have
    f_i proportional to (a + i)^(1/r) for i <= k, and what is left of the mass at k + 1.
    """
    if mean <= 0:
        return 0.0
    target, first = mean * n, int(np.ceil(least * n - 1e-9))
    if first <= 2 * target:  # a uniform distribution has as much; more is not looked for
        return 1.0
    steps = np.arange(n + 2, dtype=np.float64)
    best = 0.0
    for k in range(max(first - 1, int(np.ceil(target))), n + 1):
        last = min(k + 1, n)
        best = max(best, _best_tail(steps, k, last, first, target, 1.0 / r))
    return min(best, 1.0, mean / least)


def _best_tail(steps: Array, k: int, last: int, first: int, target: float, power: float) -> float:
    """Return the largest tail over a, of distributions on 0..k with a rest at k + 1 (k < n)."""

    inside = steps[: k + 1]

    def tails(log_a: Array) -> Array:
        a = np.exp(log_a)[:, None]
        shape = (a + inside) ** power
        if last == k:  # the whole interval: a alone sets the mean
            mass = shape / shape.sum(axis=1, keepdims=True)
            off = mass @ inside - target
            return np.asarray(np.where(off <= 1e-9, mass[:, first:].sum(axis=1), -off))
        scale = (k + 1 - target) / (shape @ (k + 1 - inside))
        rest = 1.0 - scale * shape.sum(axis=1)
        most = scale * (a[:, 0] + k + 1) ** power
        off = np.maximum(-rest, rest - most)
        possible = (rest >= -1e-12) & (rest <= most * (1 + 1e-12))
        return np.asarray(np.where(possible, 1.0 - scale * shape[:, :first].sum(axis=1), -off))

    low, high, best = np.log(1e-6), np.log(1e6), 0.0
    for count in (121, *[21] * 10):  # ever nearer around the best
        grid = np.linspace(low, high, count)
        values = tails(grid)
        at = int(np.argmax(values))
        best = max(best, float(values[at]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, count - 1)]
    return best
