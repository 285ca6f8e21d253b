"""Exact line search by a safeguarded Newton method for the derivative along the line."""

from __future__ import annotations

import math
from dataclasses import dataclass

from atomlearn.core import TUNING, Array, Problem, loss_gradient, optimal_intercept


@dataclass(frozen=True, slots=True)
class Way:
    """The objective along the line w + s d: predictions X w + s X d, and a quadratic penalty.

    ``linear`` and ``change`` are X w and X d, (n_samples,). ``slope`` and ``bend`` are the first
    and second derivative at s = 0 of all terms of the objective except the loss; these terms are
    quadratic in s.
    """

    linear: Array
    change: Array
    slope: float
    bend: float


def best_step(problem: Problem, way: Way, longest: float, intercept: float) -> float:
    """Return the exact step size s in [0, longest] of a line search.

    It minimizes min_b f(X (w + s d) + b) + s slope + s^2 / 2 bend, with the terms of ``way``, by
    Newton's method for the root of the derivative, safeguarded by a bracket. The squared loss needs
    one step; each step takes O(n_samples) operations. ``intercept`` is the first guess for b. The
    result is 0 if d is not a descent direction.
    """
    low = 0.0
    high = math.inf
    step = 0.0
    slope, bend, intercept = _slope(problem, way, step, intercept)
    if longest <= 0.0 or slope >= 0.0:
        return 0.0
    enough = 1e-12 * abs(slope)
    for _ in range(TUNING.inner_steps):
        ahead = min(step - slope / bend if bend > 0.0 else longest, longest)
        if not low < ahead < high:
            ahead = 0.5 * (low + min(high, longest))
        if ahead == step:
            break
        step = ahead
        slope, bend, intercept = _slope(problem, way, step, intercept)
        if abs(slope) <= enough or (step == longest and slope < 0.0):
            break
        low, high = (step, high) if slope < 0.0 else (low, step)
    return step


def _slope(problem: Problem, way: Way, step: float, intercept: float) -> tuple[float, float, float]:
    """Return the first and second derivative at ``step``, and the optimal intercept there."""
    linear = way.linear + step * way.change
    intercept = optimal_intercept(problem, linear, intercept)
    z = linear + intercept
    slope = way.slope + step * way.bend + float(loss_gradient(problem, z) @ way.change)
    curvature = problem.loss.curvature(problem.y, z, problem.weight)
    bend = float(curvature @ way.change**2)
    total = float(curvature.sum())
    if problem.fit_intercept and total > 0.0:
        bend -= float(curvature @ way.change) ** 2 / total
    return slope, bend + way.bend, intercept
