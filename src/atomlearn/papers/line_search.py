"""Exact line search: argmin of F along a direction, by safeguarded Newton steps on its slope."""

from __future__ import annotations

from dataclasses import dataclass

from atomlearn.core.interfaces import Array
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem
from atomlearn.papers.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Way:
    """Where a step leads from (w, t), t >= gauge(w): to (w + s d, t + s gauge_change).

    linear, change : X w and X d, (n_samples,); gauge, gauge_change : t and its change;
    inner, square : <w, d> and ||d||^2 (used where tau > 0 only).
    """

    linear: Array
    change: Array
    gauge: float
    gauge_change: float
    inner: float = 0.0
    square: float = 0.0


def best_step(problem: Problem, way: Way, longest: float, intercept: float) -> float:
    """argmin over s in [0, longest] of min_b f(X(w + s d) + b) + tau/2 ||w + s d||^2 + R(t).

    Newton steps on the slope, kept within a bracket: one for the squared loss, which they
    minimise exactly. O(n_samples) a step; 0 where the direction does not descend.
    """
    b, low, high = intercept, 0.0, longest
    slope, bend, b = _slope(problem, way, 0.0, b)
    if slope >= 0.0 or longest <= 0.0:
        return 0.0
    enough, step = SETTINGS.flat * abs(slope), 0.0
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
    loss, y, s = problem.loss, problem.y, problem.weight
    linear = way.linear + step * way.change
    b = problem.optimal_intercept(linear, b)
    z = linear + b
    curvature = loss.curvature(y, z, s)
    slope = -float(problem.negative_gradient(z) @ way.change)
    bend = float(curvature @ (way.change * way.change))
    total = float(curvature.sum())
    if problem.fit_intercept and total > 0:
        bend -= float(curvature @ way.change) ** 2 / total
    if problem.tau:
        slope += problem.tau * (way.inner + step * way.square)
        bend += problem.tau * way.square
    regularizer = problem.regularizer
    if regularizer.form == "penalized":
        slope += regularizer.amount * way.gauge_change
    elif regularizer.form == "squared":
        slope += regularizer.amount * (way.gauge + step * way.gauge_change) * way.gauge_change
        bend += regularizer.amount * way.gauge_change**2
    return slope, bend, b
