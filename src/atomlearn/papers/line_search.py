"""Exact line search by a safeguarded Newton method for the derivative along the line."""

from __future__ import annotations

import math
from dataclasses import dataclass

from atomlearn.core import TUNING, Array, Problem, loss_gradient, optimal_intercept


@dataclass(frozen=True, slots=True)
class LineProblem:
    """The objective along the line w + s d: predictions X w + s X d, and a quadratic penalty.

    ``linear`` and ``change`` are X w and X d, (n_samples,). All terms of the objective except the
    loss are quadratic in s. ``slope`` and ``curvature`` are the first and second derivative of
    their sum at s = 0.
    """

    linear: Array
    change: Array
    slope: float
    curvature: float


def best_step(problem: Problem, line: LineProblem, longest: float, intercept: float) -> float:
    """Return the exact step size s in [0, longest] of a line search.

    It minimizes min_b f(X (w + s d) + b) + slope s + curvature s^2 / 2. Here f is the loss of
    ``problem``, and ``line`` has slope, curvature, X w and X d. Newton's method computes the root
    of the derivative, safeguarded by a bracket. Each of its steps takes O(n_samples) operations,
    and the squared loss needs only one. ``intercept`` is the first guess for b. The result is 0 if
    d is not a descent direction.
    """
    lower = 0.0
    upper = math.inf
    step = 0.0
    slope, curvature, intercept = _slope(problem, line, step, intercept)
    if longest <= 0.0 or slope >= 0.0:
        return 0.0
    # The root of the derivative is between ``lower`` and ``upper``. A Newton step that leaves this
    # interval is replaced by bisection.
    sufficient = 1e-12 * abs(slope)
    for _ in range(TUNING.inner_steps):
        next_step = min(step - slope / curvature if curvature > 0.0 else longest, longest)
        if not lower < next_step < upper:
            next_step = 0.5 * (lower + min(upper, longest))
        if next_step == step:
            break
        step = next_step
        slope, curvature, intercept = _slope(problem, line, step, intercept)
        if abs(slope) <= sufficient or (step == longest and slope < 0.0):
            break
        lower, upper = (step, upper) if slope < 0.0 else (lower, step)
    return step


def _slope(
    problem: Problem, line: LineProblem, step: float, intercept: float
) -> tuple[float, float, float]:
    """Return the first and second derivative at ``step``, and the optimal intercept there.

    They are derivatives in s of the objective of ``best_step``, for the same ``problem`` and
    ``line``. The search for the optimal intercept begins at ``intercept``.
    """
    linear = line.linear + step * line.change
    intercept = optimal_intercept(problem, linear, intercept)
    z = linear + intercept
    slope = line.slope + step * line.curvature + float(loss_gradient(problem, z) @ line.change)
    curvature = problem.loss.curvature(problem.y, z, problem.weight)
    second_derivative = float(curvature @ line.change**2)
    total = float(curvature.sum())
    # The intercept is optimal at every s, which lowers the second derivative (Schur complement).
    if problem.fit_intercept and total > 0.0:
        second_derivative -= float(curvature @ line.change) ** 2 / total
    return slope, second_derivative + line.curvature, intercept
