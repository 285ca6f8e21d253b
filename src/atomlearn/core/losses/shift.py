"""The optimal constant to add to all predictions: the unpenalized intercept."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from atomlearn.core.interfaces import Array, Loss
from atomlearn.core.losses import pieces

#: If the iterate is farther from the start than this multiple of the start's mean distance from its
#: optimum, the minimum is at infinity.
FAR = 1e8


def optimal_shift(loss: Loss, y: Array, s: Array, linear: Array, start: float = 0.0) -> float:
    """Return argmin_b f(linear + b) by safeguarded Newton steps, O(n_samples) each.

    Its derivative vanishes to rounding there. If the minimum is at infinity (one class only)
    b stops where the loss has no slope left.
    """
    start = loss.best_shift(y, linear, s, start)
    if loss.smoothed(1.0) is not None:
        return start  # the solution is a quantile: at a kink the slope changes sign
    return least_shift(
        lambda b: pieces.slope(loss, y, linear, s, b),
        lambda b: pieces.curvature(loss, y, linear, s, b),
        lambda b: pieces.value(loss, y, linear, s, b),
        start,
        y.size,
    )


def least_shift(
    slope_at: Callable[[float], tuple[float, float]],
    curvature_at: Callable[[float], float],
    value_at: Callable[[float], float],
    start: float,
    count: int,
) -> float:
    """Return the b where the derivative is 0 up to the rounding of a sum of ``count`` terms.

    Curvature and value are computed only at a b whose slope was computed before. If a Newton step
    is not possible and the root is not yet bracketed, the step length is 2 f(start) over the sum of
    the magnitudes of the slopes, a mean distance of predictions, and doubled each time.
    """
    b = start
    low = -math.inf
    high = math.inf
    unit = 0.0
    stretch = 0.0
    best = start
    best_slope = math.inf
    noise = 2e-16 * (4.0 + math.sqrt(count))
    for _ in range(200):
        slope, size = slope_at(b)
        # The slope was within its rounding error twice: further steps would not improve b.
        twice = max(abs(slope), abs(best_slope)) <= noise * size
        if abs(slope) < abs(best_slope):
            best = b
            best_slope = slope
        if (twice or abs(slope) <= 4e-16 * size) and math.isfinite(size):
            break
        if not unit:
            unit = 2.0 * value_at(b) / size if size else 1.0
            unit = stretch = unit if 0.0 < unit < math.inf else 1.0
        low, high = (b, high) if slope < 0 else (low, b)
        curvature = curvature_at(b)
        proposal = b - slope / curvature if curvature > 0 else math.nan
        if not (low < proposal < high and abs(proposal - b) <= 1e3 * stretch):
            if abs(slope) <= noise * size and math.isfinite(size):
                break
            if math.isinf(low) or math.isinf(high):
                proposal = b - math.copysign(stretch, slope)
                stretch *= 2.0
            else:
                proposal = 0.5 * (low + high)
        if proposal == b or abs(proposal - start) > FAR * unit:
            break
        b = proposal
    return best


def without_surplus(v: Array) -> Array:
    """Return v with sum 0: entries of the sign with the larger sum are shrunk towards 0.

    Entries only shrink towards 0, so v stays in the domain of a conjugate that contains 0 on the
    line from each of its points, as those of losses of single predictions do. Changes v.
    """
    surplus = float(v.sum())
    heavy = v > 0 if surplus > 0 else v < 0
    total = float(v[heavy].sum())
    if total:
        v[heavy] *= 1.0 - surplus / total
    return v


class Explained(Loss):
    """A loss whose score is D^2, the explained share of the deviance."""

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return D^2 = 1 - loss / loss of the best constant prediction.

        Where no constant leaves anything to explain: 1 if nothing is missed, else 0.
        """
        missed = self.value(y, prediction, weight)
        flat = np.zeros(y.size)
        around = self.value(y, flat + optimal_shift(self, y, weight, flat), weight)
        if not around > 0.0:
            return 1.0 if missed == 0.0 else 0.0
        return 1.0 - missed / around
