"""Norms for ``bounds``: gauges and polars (dual norms) bounded from above, in NumPy only.

A norm is ``scale`` times the l1, k-support, elastic net or ordered weighted l1 norm (owl) of the
magnitudes of coefficients, or of the lengths (Euclidean norms) of groups of them. Groups may
overlap. Then w is a sum of vectors, one for each group, and the norm is the least value over all
such sums. The vectors that a claim lists bound it from above.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn.verification.losses import EPS, TINY, demand_that

ARRAYS = {"weights": float, "lower": float, "upper": float, "members": int, "starts": int}


def checked_norm_entry(entry: Any, size: int) -> Any:
    """Return the norm of a claim over ``size`` coefficients, with its lists as arrays.

    Raise ValueError if the entry does not describe a norm.
    """
    norm = {
        key: np.array(item, ARRAYS[key]) if key in ARRAYS and item is not None else item
        for key, item in entry.items()
    }
    # The norm is of magnitudes: of coefficients, or of the lengths of groups.
    weights = norm["weights"]
    members = norm["members"]
    starts = norm["starts"]
    n_magnitudes = size if members is None else starts.size - 1
    names = ("l1", "ksupport", "elasticnet", "owl")
    demand_that(norm["name"] in names and norm["scale"] > 0, f"norm: one of {names}", norm["name"])
    sizes = {"weights": n_magnitudes, "lower": size, "upper": size}
    for key, count in sizes.items():
        demand_that(norm[key] is None or norm[key].size == count, f"{key}: {count} numbers", key)
    # Group g has the coefficients members[starts[g] : starts[g + 1]].
    if members is not None:
        is_valid = members.size == starts[-1] and members.min() >= 0 and members.max() < size
        demand_that(is_valid and (np.diff(starts) > 0).all(), "groups of columns", "others")
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
    """Return upper bounds on the lengths of the groups, or |entries| for norms without groups.

    ``entries`` (m,) are values of coefficients. ``labels`` (m,) are their groups; without
    ``labels``, the entries are those of all coefficients.
    """
    if norm["members"] is None:
        return np.abs(entries)
    squares = entries * entries
    if labels is not None:
        squares = np.bincount(labels, squares, len(norm["starts"]) - 1)
    else:
        squares = np.add.reduceat(squares[norm["members"]], norm["starts"][:-1])
    return np.sqrt(squares) * (1 + (entries.size + 8) * EPS)


def gauge_above(norm: Any, columns: Any, w: Any, sets: Any) -> tuple[float, float]:
    """Return an upper bound on the gauge of w, and the factor <= 1 that brings w into its bounds.

    ``norm`` is the checked norm of a claim. w (m,) are the coefficients at ``columns`` (m,),
    which belong to the groups ``sets`` (m,).
    """
    # The slack makes the rounded gauge an upper bound.
    slack = norm["scale"] * (1 + (w.size + 40) * EPS)
    ratio = 1.0
    # The factor: the smallest ratio of a bound to its coefficient.
    if norm["lower"] is not None and w.size:
        edge = np.where(w > 0, norm["upper"][columns], -norm["lower"][columns])
        ratio = float((edge / np.maximum(np.abs(w), TINY)).min(initial=1.0, where=w != 0))
    # Each coefficient must be a member of its group, and be listed once there.
    if norm["members"] is not None:
        labels = np.repeat(np.arange(norm["starts"].size - 1), np.diff(norm["starts"]))
        memberships = set(zip(norm["members"].tolist(), labels.tolist(), strict=True))
        is_member = memberships.issuperset(zip(columns.tolist(), sets.tolist(), strict=True))
        demand_that(
            is_member, "coefficients in the groups that hold their columns", "another group"
        )
    is_unique = len(set(zip(columns.tolist(), sets.tolist(), strict=True))) == columns.size
    demand_that(is_unique, "each coefficient once, or once a group", "one twice")
    # The gauge of the magnitudes m.
    m = magnitudes(norm, w, sets)
    if norm["name"] == "l1":
        # With groups, m and the weights have an entry for each group. Without, m has only those of
        # ``columns``.
        prices: Any = 1.0 if norm["weights"] is None else norm["weights"]
        prices = (
            prices if norm["members"] is not None or norm["weights"] is None else prices[columns]
        )
        is_nonzero = m > 0
        return math.fsum((m * prices)[is_nonzero]) * slack, ratio
    if norm["name"] == "elasticnet":  # max(||m||, ||m||_1 / sqrt(k))
        scaled_l1 = math.fsum(m) / math.sqrt(norm["k"])
        return max(math.sqrt(math.fsum(m * m)), scaled_l1) * slack, ratio
    m = -np.sort(-m)
    if norm["name"] == "owl":
        return math.fsum(m * norm["weights"][: m.size]) * slack, ratio
    # The square of the k-support norm is min sum_j m_j^2 / d_j over 0 <= d <= 1, sum d <= k. The
    # best d is 1 for the q largest entries, and proportional to m for the others. These contribute
    # (their sum)^2 / (k - q).
    tail = np.cumsum(m[::-1])[::-1]
    for q in range(norm["k"]):
        if q >= m.size or m[q] * (norm["k"] - q) <= tail[q] * (1 + EPS):
            tail_term = tail[q] ** 2 / (norm["k"] - q) if q < m.size else 0.0
            break
    return math.sqrt(math.fsum(m[:q] ** 2) + tail_term) * slack, ratio


def polar_above(norm: Any, x: Any, errors: Any, amount: float, form: str) -> tuple[float, float]:
    """Return t, an upper bound on the polar of x, and the term that bounds l <= w <= u add to R*.

    ``errors`` bound the errors of the scores x. Without bounds l and u, the term is 0. With them,

        R*(x) = min_t h*(t) + sum_j u_j max(x_j - t p_j, 0) - l_j max(-x_j - t p_j, 0),

    with p the weights of the l1 norm. h is the penalty as a function of the norm: ``amount`` times
    the norm, ``amount`` / 2 times its square, or the limit ``amount`` on it, as ``form`` says.
    """
    if norm["lower"] is not None:
        return _with_bounds(norm, x, errors, amount, form)
    m = magnitudes(norm, np.abs(x) + errors)
    slack = (1 + 2 * m.size * EPS) / norm["scale"]
    if norm["name"] == "l1":
        weights = 1.0 if norm["weights"] is None else norm["weights"]
        return float((m / weights).max(initial=0.0)) * slack, 0.0
    if norm["name"] == "elasticnet":
        # The polar is the minimum over t of ||soft(m, t)|| + sqrt(k) t; any t gives an upper bound.

        def polar_at(t: float) -> float:
            """Return ||soft(m, t)|| + sqrt(k) t, with soft the soft-thresholding by t."""
            excess = np.maximum(m - t, 0.0)
            return math.sqrt(math.fsum(excess * excess)) + math.sqrt(norm["k"]) * t

        return polar_at(_minimum(polar_at, 0.0, float(m.max(initial=0.0)))) * slack, 0.0
    # The polar of owl is the largest ratio of sums of the largest magnitudes and weights; that of
    # the k-support norm is the length of the k largest magnitudes.
    m = -np.sort(-m)
    if norm["name"] == "owl":
        return float((np.cumsum(m) / np.cumsum(norm["weights"])).max(initial=0.0)) * slack, 0.0
    return math.sqrt(math.fsum(m[: norm["k"]] ** 2)) * slack, 0.0


def _with_bounds(norm: Any, x: Any, errors: Any, amount: float, form: str) -> tuple[float, float]:
    """Return t and the term of ``polar_above`` for the l1 norm with bounds on coefficients.

    The parameters are those of ``polar_above``. The result is a t near the minimizer in the formula
    there, and the sum over j at this t; any t gives an upper bound on R*.
    """
    price = norm["scale"] * norm["weights"] * (1 - 2 * EPS)
    # Positive and negative values of a coefficient have separate bounds u and -l. A finite bound
    # adds a term. An infinite one demands t p_j >= x_j (or -x_j), so t is at least this ratio.
    ratios = [0.0]
    boxes = []
    for side, z in ((norm["upper"], x + errors), (-norm["lower"], errors - x)):
        is_finite = (side > 0) & np.isfinite(side)
        boxes.append((side[is_finite], z[is_finite], price[is_finite]))
        ratios.append(float((z / price).max(initial=0.0, where=side == np.inf)))

    def box_term(t: float) -> float:
        """Return the term that finite bounds add: sum u max(z - t p, 0) over both sides."""
        return sum(math.fsum(u * np.maximum(z - t * p, 0.0)) for u, z, p in boxes)

    def conjugate(t: float) -> float:
        """Return h*(t) plus the term of the bounds, in the squared and the constrained form."""
        return box_term(t) + (t * t / 2 / amount if form == "squared" else amount * t)

    least = max(ratios)
    if form == "penalized":  # h*(t) = 0 for t <= amount, and the sum decreases in t: t = amount
        return least, box_term(amount)
    # All terms of the sum are 0 from the largest ratio on, so the minimizer is not larger.
    largest = max(least, *(float((z / p).max(initial=0.0)) for _, z, p in boxes))
    t = _minimum(conjugate, least, largest)
    return t, box_term(t)


def _minimum(function: Any, low: float, high: float) -> float:
    """Return a number near the minimizer of a convex function between ``low`` and ``high``."""
    for _ in range(100):
        # The minimizer is not in the outer third at the larger of two values.
        left = low + (high - low) / 3
        right = high - (high - low) / 3
        low, high = (low, right) if function(left) <= function(right) else (left, high)
    return low
