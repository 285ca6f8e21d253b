"""The optimal constant to add to all predictions: the unpenalized intercept."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from atomlearn.core.interfaces import Array, Loss
from atomlearn.core.losses import pieces

#: If the iterate is farther from the start than this multiple of the first step length, the minimum
#: is at infinity.
FAR = 1e8


def optimal_shift(loss: Loss, y: Array, s: Array, linear: Array, start: float = 0.0) -> float:
    """Return the intercept argmin_b f(linear + b) by safeguarded Newton steps, O(n_samples) each.

    linear : the predictions without intercept, (n_samples,); s : the sample weights; start : a
    first guess. The derivative is 0 to rounding at the result. If the minimum is at infinity (all
    targets are of one class), the result is a b at which the loss has no slope left. y : targets.
    """
    start = loss.best_shift(y, linear, s, start)
    if loss.smoothed(1.0) is not None:
        # A loss with kinks: its ``best_shift`` is exact, a quantile.
        return start
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

    slope_at : b -> the derivative, and the sum of the magnitudes of its terms. curvature_at,
    value_at : b -> the second derivative, and the value. Both are called only at a b whose slope
    was computed before. start : the first b.

    If a Newton step is not possible and the root is not yet bracketed, b moves by ``stretch``,
    which doubles each time. It starts at 2 f(start) over the sum of the magnitudes of the slopes,
    which is a mean distance of the predictions from their optimum.
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
        # The first slope gives the unit of step lengths.
        if not unit:
            unit = 2.0 * value_at(b) / size if size else 1.0
            unit = stretch = unit if 0.0 < unit < math.inf else 1.0
        low, high = (b, high) if slope < 0 else (low, b)
        curvature = curvature_at(b)
        proposal = b - slope / curvature if curvature > 0 else math.nan
        if not (low < proposal < high and abs(proposal - b) <= 1e3 * stretch):
            # Newton's step is not usable, and the slope is zero to rounding already.
            if abs(slope) <= noise * size and math.isfinite(size):
                break
            # Without a bracket, step down the slope by ``stretch``; with a bracket, bisect it.
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
    """Return v with sum 0: entries of the sign with the larger sum are shrunk towards 0, in place.

    Entries only shrink towards 0. So a dual point v stays in the domain of a conjugate: the domain
    is convex and contains 0, if the loss does not couple samples.
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

        If a constant has no loss, there is nothing to explain. Then the score is 1 for predictions
        without a loss, and else 0. y : targets; prediction : z (n_samples,); weight : sample
        weights.
        """
        value = self.value(y, prediction, weight)
        zeros = np.zeros(y.size)
        constant_value = self.value(y, zeros + optimal_shift(self, y, weight, zeros), weight)
        if not constant_value > 0.0:
            return 1.0 if value == 0.0 else 0.0
        return 1.0 - value / constant_value
