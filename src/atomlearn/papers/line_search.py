"""Exact line search: argmin of F along a direction, by safeguarded Newton steps on its slope."""

from __future__ import annotations

from dataclasses import dataclass

from atomlearn.core.interfaces import Array
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Way:
    """A line of points: predictions linear + s change, and penalties with slope + s bend.

    linear, change : X w and X d, (n_samples,); slope, bend : derivatives at 0 of all of F but the
    loss, which is quadratic along the line.
    """

    linear: Array
    change: Array
    slope: float
    bend: float = 0.0


def best_step(problem: Problem, way: Way, longest: float, intercept: float) -> float:
    """argmin over s in [0, longest] of min_b f(X(w + s d) + b) + s slope + s^2/2 bend.

    Newton steps on the slope, kept within a bracket: one for the squared loss, which they
    minimise exactly. O(n_samples) a step; 0 where the direction does not descend.
    """
    low, high, step = 0.0, longest, 0.0
    slope, bend, b = _slope(problem, way, 0.0, intercept)
    if slope >= 0.0 or longest <= 0.0:
        return 0.0
    enough = 1e-12 * abs(slope)
    for _ in range(TUNING.inner_steps):  # a bisection alone would need 60
        proposal = step - slope / bend if bend > 0 else high
        if proposal >= high and high == longest:
            # Not below the end that was never tried: try it.
            proposal = longest
        elif not low < proposal < high:
            proposal = 0.5 * (low + high)
        if proposal == step:
            break
        step = proposal
        slope, bend, b = _slope(problem, way, step, b)
        if abs(slope) <= enough or (step == longest and slope <= 0.0):
            break
        low, high = (step, high) if slope < 0 else (low, step)
        if high - low <= 4e-16 * high:
            break
    return step


def _slope(problem: Problem, way: Way, step: float, b: float) -> tuple[float, float, float]:
    """Return the first and second derivative at ``step``, and the optimal intercept there."""
    linear = way.linear + step * way.change
    b = problem.optimal_intercept(linear, b)
    z = linear + b
    curvature = problem.loss.curvature(problem.y, z, problem.weight)
    slope = -float(problem.negative_gradient(z) @ way.change)
    bend = float(curvature @ (way.change * way.change))
    total = float(curvature.sum())
    if problem.fit_intercept and total > 0:
        bend -= float(curvature @ way.change) ** 2 / total
    return slope + way.slope + step * way.bend, bend + way.bend, b
