"""Exact line search: argmin of F along a direction, as the root of its slope."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from scipy.optimize import brentq

from atomlearn.core.interfaces import Array
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
    bend: float


def best_step(problem: Problem, way: Way, longest: float, intercept: float) -> float:
    """argmin over s in [0, longest] of min_b f(X(w + s d) + b) + s slope + s^2/2 bend.

    O(n_samples) an evaluation of the slope; 0 where the direction does not descend.
    """

    @cache  # the search asks for both ends again
    def slope(step: float) -> float:
        nonlocal intercept
        linear = way.linear + step * way.change
        intercept = problem.optimal_intercept(linear, intercept)
        dual = problem.negative_gradient(linear + intercept)
        return way.slope + step * way.bend - float(dual @ way.change)

    if longest <= 0.0 or slope(0.0) >= 0.0:
        return 0.0
    if slope(longest) <= 0.0:
        return longest
    return float(brentq(slope, 0.0, longest, xtol=1e-12 * longest))
