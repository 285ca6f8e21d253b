"""Three proximal maps from one: the squared and constrained forms by root finding in the step.

The gauge is the norm, and its polar the dual norm. Let x(theta) = argmin 1/2 ||x - v||^2 + theta
gauge(x). The proximal map of (step / 2) gauge^2 is x(theta) at theta = step gauge(x(theta)). The
projection onto gauge <= radius is x(theta) at the theta with gauge(x(theta)) = radius. Let s = (v -
x) / theta, a subgradient of the gauge at x, and J the Jacobian of x in v at fixed theta. As the
gauge is homogeneous, dx/dtheta = -J s, and d gauge = s'J dv - s'J s dtheta. This also holds with
bounds on single coefficients: J is 0 for a coefficient at its bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from atomlearn.core.interfaces import Array, Form, ProxJacobian, ProxPoint

#: Maximum number of Newton steps of the root finding; each evaluates one proximal map.
MAX_SEARCH = 200


def soft_threshold(v: Array, threshold: Array | float) -> Array:
    """Return sign(v) max(|v| - threshold, 0) for each entry of v."""
    return np.asarray(np.copysign(np.maximum(np.abs(v) - threshold, 0.0), v))


def soft_point(v: Array, step: float, weights: Array | float = 1.0) -> ProxPoint:
    """Return argmin_x 1/2 ||x - v||^2 + step * sum_j weight_j |x_j| for v (n,): a soft threshold.

    weights : one number, or one for each entry.
    """
    threshold = step * weights
    point = soft_threshold(v, threshold)

    def jacobian() -> ProxJacobian:
        """Return the Jacobian: 1 for entries above their threshold (all if step = 0), else 0."""
        active = (np.abs(v) > threshold) | (step == 0.0)
        return ProxJacobian(active.astype(np.float64))

    return ProxPoint(point, float((weights * np.abs(point)).sum()), jacobian)


def l1_point(v: Array, weights: Array | float, amount: float, form: Form) -> ProxPoint:
    """Return the proximal map of ``form`` at v (n,), for gauge(x) = sum_j weight_j |x_j|.

    The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus (amount /
    2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on gauge(x) <= amount.
    All weights are positive.
    """

    def polar(z: Array) -> float:
        """Return max_j |z_j| / weight_j, the polar (dual norm) of z (n,)."""
        return float((np.abs(z) / weights).max(initial=0.0))

    def exact(offset: float, slope: float) -> float:
        """Return the root theta of offset + slope theta = sum_j c_j max(|v_j| - theta c_j, 0).

        c = ``weights``; the right side is the gauge of v after a soft threshold at theta c.
        """
        # The entries with |v_j| > theta c_j are the first i ones by decreasing |v_j| / c_j. For
        # fixed i the equation is linear in theta: theta_i = (sum c_j |v_j| - offset) / (sum c_j^2 +
        # slope), with sums over these entries. The largest theta_i is the root.
        sizes = np.abs(v)
        order = np.argsort(-sizes / weights)
        c = np.broadcast_to(weights, v.shape)[order]
        thetas = (np.cumsum(c * sizes[order]) - offset) / (np.cumsum(c * c) + slope)
        return float(thetas.max())

    return three_forms(v, amount, form, lambda u, step: soft_point(u, step, weights), polar, exact)


def three_forms(
    v: Array,
    amount: float,
    form: Form,
    penalized: Callable[[Array, float], ProxPoint],
    polar: Callable[[Array], float],
    guess: Callable[[float, float], float] | None = None,
) -> ProxPoint:
    """Return the proximal map of ``form`` at v (n,), computed from the map of theta * gauge.

    The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus (amount /
    2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on gauge(x) <= amount.

    penalized : (v, theta) -> x(theta) = argmin_x 1/2 ||x - v||^2 + theta * gauge(x). polar : the
    polar (dual norm). A safeguarded Newton method solves gauge(x(theta)) = offset + slope * theta
    for theta. Offset and slope are 0 and 1 / amount for the squared form, ``amount`` and 0 for the
    constrained form. guess : (offset, slope) -> theta, an initial theta.
    """
    if form == "penalized":
        return penalized(v, amount)
    # No step, or v is in the ball already: the point for theta = 0.
    start = penalized(v, 0.0)
    if (form == "squared" and amount == 0.0) or (form == "constrained" and start.gauge <= amount):
        return start
    # If the polar of v is 0, the point is x(0) for every theta, and its gauge is 0. The Jacobian is
    # not unique there; a multiple of I is used.
    high = polar(v)
    if high == 0.0:
        return ProxPoint(
            start.point, 0.0, lambda: ProxJacobian(np.full(v.size, 1.0 / (1.0 + amount)))
        )
    # The ball of radius 0 has only the point 0, and x(theta) = 0 for any theta beyond the polar.
    if form == "constrained" and amount == 0.0:
        return penalized(v, 2.0 * high)
    theta, point = _search(v, amount, form, penalized, start, high, guess)

    def jacobian() -> ProxJacobian:
        """Return the Jacobian of x(theta(v)): J at fixed theta, minus a term of rank one."""
        # J at fixed theta, and the change of theta with v: see the formulas of the module.
        inner = point.jacobian()
        s = (v - point.point) / theta
        direction = inner.apply(s)
        curvature = float(s @ direction) + (1.0 / amount if form == "squared" else 0.0)
        if curvature <= 0.0:
            return inner
        return inner.plus(direction[:, None], np.array([-1.0 / curvature]))

    return ProxPoint(point.point, point.gauge, jacobian)


def _search(
    v: Array,
    amount: float,
    form: Form,
    penalized: Callable[[Array, float], ProxPoint],
    start: ProxPoint,
    high: float,
    guess: Callable[[float, float], float] | None,
) -> tuple[float, ProxPoint]:
    """Return the root theta of gauge(x(theta)) = offset + slope * theta, and x(theta).

    x(theta) = argmin_x 1/2 ||x - v||^2 + theta * gauge(x) is computed by ``penalized``. For the
    form "squared" the right side is theta / amount, and for "constrained" the radius ``amount``.
    start : x(0). high : the polar (dual norm) of v, an upper bound on theta. guess : (offset,
    slope) -> theta, a first guess.
    """
    slope, offset = (1.0 / amount, 0.0) if form == "squared" else (0.0, amount)
    low = 0.0
    # gauge(x(theta)) decreases from that of x(0) to 0 at the polar ``high``. The first theta is the
    # root for the straight line between these two points, or the guess.
    theta = high * (start.gauge - offset) / (start.gauge + slope * high)
    theta = theta if guess is None else guess(offset, slope)
    point = penalized(v, theta)
    for _ in range(MAX_SEARCH):
        excess = point.gauge - offset - slope * theta
        # The gauge falls with theta: the root is above theta if the gauge is still too large.
        if excess > 0:
            low = theta
        else:
            high = theta
        # The root is found up to the rounding of these terms.
        scale = point.gauge + offset + slope * theta
        if abs(excess) <= 2e-15 * scale or high - low <= 4e-16 * high:
            break
        # Newton's step, with s a subgradient of the gauge; bisection if it leaves (low, high).
        s = (v - point.point) / theta if theta > 0 else v
        derivative = float(s @ point.jacobian().apply(s)) + slope
        proposal = theta + excess / derivative if derivative > 0 else np.inf
        if not low < proposal < high:
            proposal = 0.5 * (low + high)
        if proposal == theta:
            break
        theta = proposal
        point = penalized(v, theta)
    return theta, point
