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

    slope_at : b -> the derivative of the function, and the sum of the magnitudes of its terms.
    curvature_at : b -> the second derivative. value_at : b -> the value. The last two are called
    only at a b whose slope was computed before. start : the first b.

    The root of the derivative is in the bracket (``low``, ``high``). If a Newton step is not usable
    and an end of the bracket is infinite, b moves by ``stretch``, which doubles each time. It
    starts at ``first_step``, 2 f(start) over the sum of the magnitudes. This is a mean distance of
    the predictions from their optimum.
    """
    b = start
    low = -math.inf
    high = math.inf
    first_step = 0.0
    stretch = 0.0
    best = start
    best_slope = math.inf
    relative_rounding = 2e-16 * (4.0 + math.sqrt(count))
    for _ in range(200):
        slope, magnitudes = slope_at(b)
        rounding = relative_rounding * magnitudes
        # The slope was within its rounding error twice: further steps would not improve b.
        is_twice_zero = max(abs(slope), abs(best_slope)) <= rounding
        if abs(slope) < abs(best_slope):
            best = b
            best_slope = slope
        if (is_twice_zero or abs(slope) <= 4e-16 * magnitudes) and math.isfinite(magnitudes):
            break
        # The first value and slope give the scale of step lengths.
        if not first_step:
            first_step = 2.0 * value_at(b) / magnitudes if magnitudes else 1.0
            first_step = stretch = first_step if 0.0 < first_step < math.inf else 1.0
        low, high = (b, high) if slope < 0 else (low, b)
        curvature = curvature_at(b)
        proposal = b - slope / curvature if curvature > 0 else math.nan
        if not (low < proposal < high and abs(proposal - b) <= 1e3 * stretch):
            # Newton's step is not usable, but the slope is zero to rounding already.
            if abs(slope) <= rounding and math.isfinite(magnitudes):
                break
            # Without a bracket, step down the slope by ``stretch``; with a bracket, bisect it.
            if math.isinf(low) or math.isinf(high):
                proposal = b - math.copysign(stretch, slope)
                stretch *= 2.0
            else:
                proposal = 0.5 * (low + high)
        if proposal == b or abs(proposal - start) > FAR * first_step:
            break
        b = proposal
    return best


def without_surplus(v: Array) -> Array:
    """Return v with sum 0, changed in place: entries of one sign are multiplied by a factor.

    It is the sign with the larger sum of magnitudes, so that these entries shrink towards 0. A dual
    point v then stays in the domain of a conjugate, an interval around 0 for each sample. This
    needs a loss that does not couple samples.
    """
    # With T the sum of these entries, the factor 1 - surplus / T makes the sum 0.
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
