"""Soft thresholds: the three proximal maps of a weighted l1 norm, sum_j weight_j |v_j|."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Form, ProxJacobian, ProxPoint


def solve_threshold(magnitudes: Array, weights: Array | None, offset: float, slope: float) -> float:
    """Return theta >= 0 with sum_j c_j max(m_j - theta c_j, 0) = offset + slope * theta.

    Newton's method from the left, which is monotone and ends when the active set settles; each
    sum is taken afresh over the active entries, so no digits are lost to running sums. 0 where
    the left side is below the offset. O(n) a round, few rounds, and active entries only.
    """
    m = magnitudes[magnitudes > 0]
    c = np.ones(m.size) if weights is None else weights[magnitudes > 0]
    theta = 0.0
    while m.size:
        theta = max(theta, (float(np.dot(c, m)) - offset) / (float(np.dot(c, c)) + slope))
        stay = m > theta * c
        if stay.all():
            break
        m, c = m[stay], c[stay]
    return theta


def soft_threshold(v: Array, threshold: Array | float) -> Array:
    """Return sign(v) max(|v| - threshold, 0)."""
    return np.asarray(np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0))


def weighted_l1_point(v: Array, weights: Array | None, amount: float, form: Form) -> ProxPoint:
    """prox of step * g, of (step / 2) g^2, or projection onto g <= radius; g = sum c_j |v_j|.

    All three are soft thresholds theta * c_j; theta is the step, or depends on v through the
    active set, which adds the rank-one term of the Jacobian.
    """
    magnitudes = np.abs(v)
    c: Array | float = 1.0 if weights is None else weights
    if form == "penalized":
        theta = amount
    elif form == "squared":
        theta = solve_threshold(magnitudes, weights, 0.0, 1.0 / amount) if amount > 0 else 0.0
    else:
        theta = 0.0
        if float((c * magnitudes).sum()) > amount:
            theta = solve_threshold(magnitudes, weights, amount, 0.0)
    shrunk = np.maximum(magnitudes - theta * c, 0.0)
    gauge = float((c * shrunk).sum())

    def jacobian() -> ProxJacobian:
        if theta == 0.0 and not (form == "squared" and amount > 0):
            return ProxJacobian(np.ones(v.size))
        active = magnitudes > theta * c
        if form == "squared" and not active.any() and v.size:
            # At v = 0 the limit from along one coordinate is a generalized Jacobian; 0 is not.
            active[int(magnitudes.argmax())] = True
        return _threshold_jacobian(v, c, active, amount, form)

    return ProxPoint(np.copysign(shrunk, v), gauge, jacobian)


def _threshold_jacobian(
    v: Array, c: Array | float, active: NDArray[np.bool_], amount: float, form: Form
) -> ProxJacobian:
    diagonal = active.astype(np.float64)
    if form == "penalized" or not active.any():
        return ProxJacobian(diagonal)
    direction = np.where(active, np.copysign(c, v), 0.0)
    total = float(np.dot(direction, direction))
    coefficient = -amount / (1.0 + amount * total) if form == "squared" else -1.0 / total
    return ProxJacobian(diagonal, direction[:, None], np.array([coefficient]))
