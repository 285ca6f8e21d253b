"""Lower bounds on the optimum of a problem, in long double: nothing of a solver takes part.

A point (w, b) gives predictions z, and slopes u = f'(z + c), with c such that they sum to zero
where there is an intercept. Weak duality at any such u, with any 0 < t <= 1, is

    F(w, b) - F* <= f(z) + f*(t u) - t <u, o> + (1 + t^2) tau ||w||^2 / 2
                    + R(w) + R*(-t (X'u + tau w)),

where o are offsets of the predictions, which z holds.

Polars are formulas of this file, or upper bounds of them; conjugates are those of ``conjugate``.
So what comes out is a proof for the point, whoever found it: as tight as the point is good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Long = np.longdouble
Polar = Callable[[np.ndarray], Any]
#: Losses that have a slope everywhere, and conjugates of a sample each.
KNOWN = ("squared", "logistic", "squared_hinge", "huber", "poisson", "gamma", "tweedie",
         "negative_binomial")  # fmt: skip


def slope(loss: Any, y: Any, z: Any) -> Any:
    """Return the derivative of each sample's loss."""
    name = loss.name
    if name == "squared":
        return z - y
    if name == "huber":
        return np.clip(z - y, -Long(loss.delta), Long(loss.delta))
    if name == "logistic":
        return -y * np.exp(-np.logaddexp(0, y * z))
    if name == "squared_hinge":
        return -y * np.maximum(1 - y * z, 0)
    if name == "poisson":
        return np.exp(z) - y
    if name == "gamma":
        return 1 - y * np.exp(-z)
    if name == "tweedie":
        p = Long(loss.power)
        return np.exp((2 - p) * z) - y * np.exp((1 - p) * z)
    theta = Long(loss.theta)
    return (y + theta) / (1 + theta * np.exp(-z)) - y


def conjugate(loss: Any, y: Any, u: Any) -> Any:
    """Return sup over z of u z - loss(y, z), for losses whose least value is zero."""
    name = loss.name
    if name in ("squared", "huber"):
        return u * y + u * u / 2
    if name == "logistic":
        return _entropy(-y * u) + _entropy(1 + y * u)
    if name == "squared_hinge":
        return u * u / 2 + y * u
    if name == "poisson":
        return _entropy(u + y) - u - _entropy(y)
    if name == "gamma":
        return u + (u - 1) * (np.log(y) - np.log1p(-u)) + np.log(y)
    theta = Long(loss.theta)
    share, rest = (u + y) / (y + theta), (theta - u) / (y + theta)
    inner = _entropy(share) + _entropy(rest) - rest * np.log(theta)
    whole = y + theta
    # The least value of the raw loss, which is taken off: at exp(z) = y.
    least = whole * np.log(whole) - _entropy(y)
    least = np.where(y > 0, least, theta * np.log(theta))
    return whole * inner + least


def _entropy(a: Any) -> Any:
    return np.where(a > 0, a * np.log(np.where(a > 0, a, 1)), 0)


def balanced(loss: Any, y: Any, z: Any, s: Any) -> Any:
    """Return z + c where the weighted slopes sum to zero as far as long doubles go."""

    def total(c: Any) -> Any:
        return (s * slope(loss, y, z + c)).sum()

    size = Long(1e-12) * (1 + np.abs(z).max())
    first = total(Long(0))
    if first == 0:
        return z
    sign = -1 if first > 0 else 1
    far = Long(sign) * size
    while total(far) * first > 0:
        far *= 16
        if abs(far) > 1e3 * (1 + np.abs(z).max()):
            return z
    near = Long(0)
    for _ in range(140):
        middle = (near + far) / 2
        if middle in (near, far):
            break
        near, far = (middle, far) if total(middle) * first > 0 else (near, middle)
    return z + near


def gap(task: Any, w: Any, y: Any, z: Any, penalty: Any) -> Any:
    """Return a bound on F - F* at a point of linear part z; inf where this file has none."""
    loss, s = task.loss, task.weight.astype(Long)
    if loss.name not in KNOWN or task.polar is None:
        return Long("inf")
    with np.errstate(all="ignore"):
        tau, used = Long(task.arguments["tau"]), s > 0
        at = balanced(loss, y, z, s) if task.arguments["fit_intercept"] else z
        u = slope(loss, y, at)
        scores = -(task.dense.astype(Long).T @ (s * u)) - tau * w
        polar, form = task.polar(scores), task.arguments["form"]
        amount = Long(task.arguments.get("level", task.arguments.get("radius")))
        factor = Long(1)
        if form == "penalized":
            # A little further, so that the rounding of the polar is inside.
            factor = min(factor, amount / polar * (1 - Long(1e-18))) if polar > 0 else factor
        beyond = {"penalized": 0, "squared": (factor * polar) ** 2 / (2 * amount),
                  "constrained": amount * polar}[form]  # fmt: skip
        dual = _at(loss, y, u, at, factor) - factor * u * task.arguments.get("offset", 0.0)
        value = (s * (task.each(y, z) + dual))[used].sum()
        square = w @ w
        return value + tau * square * (1 + factor**2) / 2 + penalty + beyond


def _at(loss: Any, y: Any, u: Any, z: Any, factor: Any) -> Any:
    """Return the conjugate at factor u, where u is the slope at z."""
    if loss.name != "tweedie":
        return conjugate(loss, y, factor * u)
    p = Long(loss.power)
    least = np.log(np.where(y > 0, y, 1))
    raw = np.exp((2 - p) * least) / (2 - p) - y * np.exp((1 - p) * least) / (1 - p)
    for _ in range(30):
        curvature = (2 - p) * np.exp((2 - p) * z) + (p - 1) * y * np.exp((1 - p) * z)
        z = z - np.clip((slope(loss, y, z) - factor * u) / curvature, -1, 1)
    value = np.exp((2 - p) * z) / (2 - p) - y * np.exp((1 - p) * z) / (1 - p)
    # Off by the square of what Newton's steps left.
    return factor * u * z - value + np.where(y > 0, raw, 0)


# --- polars and gauges --------------------------------------------------------------------------


def ordered(w: Any) -> Any:
    """Return magnitudes, the largest first."""
    return np.sort(np.abs(w))[::-1]


def lengths(w: Any, sets: list[Any]) -> Any:
    """Return the Euclidean length on each set of columns."""
    return np.array([np.sqrt((w[g] ** 2).sum()) for g in sets])


def ksupport(w: Any, k: int) -> Any:
    """Return the k-support norm by its formula: l2 on the largest, l1 on the tail."""
    a = ordered(w)
    if k >= a.size:
        return np.sqrt((a * a).sum())
    # Rounding must not hide the one r there is: the value is continuous from one to the next.
    most = 1 + 64 * np.finfo(a.dtype).eps
    for r in range(k):
        head = k - r - 1
        tail = a[head:].sum()
        between = head == 0 or a[head - 1] * (r + 1) * most >= tail
        if between and tail * most >= (r + 1) * a[head]:
            break
    return np.sqrt((a[:head] ** 2).sum() + tail**2 / (r + 1))


def elastic_polar(z: Any, k: float) -> Any:
    """Return min over theta of ||soft(z, theta)|| + sqrt(k) theta, or a little more."""
    a, root = np.abs(z), np.sqrt(Long(k))
    low, high = Long(0), a.max()
    for _ in range(7):
        grid = np.linspace(low, high, 33, dtype=Long)
        rest = np.maximum(a[None, :] - grid[:, None], 0)
        values = np.sqrt((rest**2).sum(axis=1)) + root * grid
        best = int(values.argmin())
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 32)]
    return values[best]


def owl_polar(z: Any, weights: Any) -> Any:
    """Return the largest ratio of sums of the first magnitudes and weights."""
    return (np.cumsum(ordered(z)) / np.cumsum(weights.astype(Long))).max()
