"""Norms for ``bounds``: gauges and polars bounded from above, in NumPy only.

A norm is ``scale`` times the l1, k-support, elastic net or ordered weighted l1 norm (owl) of the
magnitudes of coefficients, or of the lengths of groups of them. Groups may overlap: then w is the
sum of the parts that are listed, and these bound the gauge, the least over all such sums.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn.verification.losses import EPS, TINY, demand_that

ARRAYS = {"weights": float, "lower": float, "upper": float, "members": int, "starts": int}


def checked_norm_entry(entry: Any, size: int) -> Any:
    """Return a norm over so many coefficients, its lists as arrays; ValueError if it is none."""
    norm = {
        key: np.array(item, ARRAYS[key]) if key in ARRAYS and item is not None else item
        for key, item in entry.items()
    }
    weights = norm["weights"]
    members = norm["members"]
    starts = norm["starts"]
    n_magnitudes = size if members is None else starts.size - 1
    names = ("l1", "ksupport", "elasticnet", "owl")
    demand_that(norm["name"] in names and norm["scale"] > 0, f"norm: one of {names}", norm["name"])
    sizes = {"weights": n_magnitudes, "lower": size, "upper": size}
    for key, count in sizes.items():
        demand_that(norm[key] is None or norm[key].size == count, f"{key}: {count} numbers", key)
    if members is not None:
        held = members.size == starts[-1] and members.min() >= 0 and members.max() < size
        demand_that(held and (np.diff(starts) > 0).all(), "groups of columns", "others")
    if weights is not None:
        demand_that((weights >= 0).all(), "weights >= 0", weights.min())
    if norm["name"] == "owl":
        demand_that((np.diff(weights) <= 0).all() and weights[0] > 0, "weights that fall", "others")
    if norm["lower"] is not None:
        demand_that(
            members is None and norm["name"] == "l1", "bounds with the l1 norm", norm["name"]
        )
        demand_that(
            (norm["lower"] <= 0).all() and (norm["upper"] >= 0).all(), "bounds on 0", "others"
        )
    if norm["name"] in ("ksupport", "elasticnet"):
        demand_that(norm["k"] >= 1, "k >= 1", norm["k"])
    return norm


def magnitudes(norm: Any, entries: Any, labels: Any = None) -> Any:
    """Return upper bounds on the lengths of the sets: of entries with labels, or of all columns."""
    if norm["members"] is None:
        return np.abs(entries)
    squares = entries * entries
    if labels is not None:
        squares = np.bincount(labels, squares, len(norm["starts"]) - 1)
    else:
        squares = np.add.reduceat(squares[norm["members"]], norm["starts"][:-1])
    return np.sqrt(squares) * (1 + (entries.size + 8) * EPS)


def gauge_above(norm: Any, columns: Any, w: Any, sets: Any) -> tuple[float, float]:
    """Return an upper bound on the gauge, and the factor that brings w into its bounds."""
    slack = norm["scale"] * (1 + (w.size + 40) * EPS)
    ratio = 1.0
    if norm["lower"] is not None and w.size:
        edge = np.where(w > 0, norm["upper"][columns], -norm["lower"][columns])
        ratio = float((edge / np.maximum(np.abs(w), TINY)).min(initial=1.0, where=w != 0))
    if norm["members"] is not None:
        labels = np.repeat(np.arange(norm["starts"].size - 1), np.diff(norm["starts"]))
        memberships = set(zip(norm["members"].tolist(), labels.tolist(), strict=True))
        is_member = memberships.issuperset(zip(columns.tolist(), sets.tolist(), strict=True))
        demand_that(
            is_member, "coefficients in the groups that hold their columns", "another group"
        )
    once = len(set(zip(columns.tolist(), sets.tolist(), strict=True))) == columns.size
    demand_that(once, "each coefficient once, or once a group", "one twice")
    m = magnitudes(norm, w, sets)
    if norm["name"] == "l1":
        prices: Any = 1.0 if norm["weights"] is None else norm["weights"]
        prices = (
            prices if norm["members"] is not None or norm["weights"] is None else prices[columns]
        )
        is_nonzero = m > 0
        return math.fsum((m * prices)[is_nonzero]) * slack, ratio
    if norm["name"] == "elasticnet":
        longer = math.fsum(m) / math.sqrt(norm["k"])
        return max(math.sqrt(math.fsum(m * m)), longer) * slack, ratio
    m = -np.sort(-m)
    if norm["name"] == "owl":
        return math.fsum(m * norm["weights"][: m.size]) * slack, ratio
    tail = np.cumsum(m[::-1])[::-1]
    for q in range(norm["k"]):  # d = 1 for the q largest entries, then d is proportional to m
        if q >= m.size or m[q] * (norm["k"] - q) <= tail[q] * (1 + EPS):
            rest = tail[q] ** 2 / (norm["k"] - q) if q < m.size else 0.0
            break
    return math.sqrt(math.fsum(m[:q] ** 2) + rest) * slack, ratio


def polar_above(norm: Any, x: Any, errors: Any, amount: float, form: str) -> tuple[float, float]:
    """Return t, at least the polar of x without boxes, and what boxes l <= w <= u add to R*(t).

    R* is the least over t of h*(t) + sum_j u_j max(x_j - t p_j, 0) - l_j max(-x_j - t p_j, 0).
    """
    if norm["lower"] is not None:
        return _with_bounds(norm, x, errors, amount, form)
    m = magnitudes(norm, np.abs(x) + errors)
    slack = (1 + 2 * m.size * EPS) / norm["scale"]
    if norm["name"] == "l1":
        weights = 1.0 if norm["weights"] is None else norm["weights"]
        return float((m / weights).max(initial=0.0)) * slack, 0.0
    if (
        norm["name"] == "elasticnet"
    ):  # the minimum over t of ||soft(m, t)|| + sqrt(k) t; any t gives an upper bound

        def at(t: float) -> float:
            excess = np.maximum(m - t, 0.0)
            return math.sqrt(math.fsum(excess * excess)) + math.sqrt(norm["k"]) * t

        return at(_minimum(at, 0.0, float(m.max(initial=0.0)))) * slack, 0.0
    m = -np.sort(-m)
    if norm["name"] == "owl":
        return float((np.cumsum(m) / np.cumsum(norm["weights"])).max(initial=0.0)) * slack, 0.0
    return math.sqrt(math.fsum(m[: norm["k"]] ** 2)) * slack, 0.0


def _with_bounds(norm: Any, x: Any, errors: Any, amount: float, form: str) -> tuple[float, float]:
    """Return the same for the l1 norm with bounds on coefficients."""
    price = norm["scale"] * norm["weights"] * (1 - 2 * EPS)
    ratios = [0.0]
    boxes = []
    for side, z in ((norm["upper"], x + errors), (-norm["lower"], errors - x)):
        box = (side > 0) & np.isfinite(side)
        boxes.append((side[box], z[box], price[box]))
        ratios.append(float((z / price).max(initial=0.0, where=side == np.inf)))

    def added(t: float) -> float:
        return sum(math.fsum(u * np.maximum(z - t * p, 0.0)) for u, z, p in boxes)

    def whole(t: float) -> float:
        return added(t) + (t * t / 2 / amount if form == "squared" else amount * t)

    least = max(ratios)
    if form == "penalized":
        return least, added(amount)
    largest = max(least, *(float((z / p).max(initial=0.0)) for _, z, p in boxes))
    t = _minimum(whole, least, largest)
    return t, added(t)


def _minimum(function: Any, low: float, high: float) -> float:
    """Return a number near the least value of a convex function between two numbers."""
    for _ in range(100):
        third = low + (high - low) / 3
        far = high - (high - low) / 3
        low, high = (low, far) if function(third) <= function(far) else (third, high)
    return low
