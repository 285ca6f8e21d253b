"""Losses whose mean is exp(prediction): Poisson, gamma, Tweedie, negative binomial."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array
from atomlearn.core.interfaces.loss import rounded
from atomlearn.core.interfaces.targets import positive_target
from atomlearn.core.losses.domain import per_unit_weight, weighted_sum, where_weighted
from atomlearn.core.losses.shift import Explained

#: Exponents are cut here: exp(700) is nearly the largest float. A cut slope is still a dual point,
#: and a larger value is infinite, so that no gap is proved with it.
LARGEST_EXPONENT = 700.0


def exponential(exponent: NDArray[Any]) -> NDArray[Any]:
    """Return exp(x), infinite without a warning if it is beyond the largest float."""
    with np.errstate(over="ignore"):
        result: NDArray[Any] = np.exp(exponent)
    return result


def log_or_zero(y: Array) -> Array:
    """Return log y where y > 0, else 0."""
    return np.log(y, out=np.zeros_like(y), where=y > 0.0)


def vanishing(linear: Array, rate: float = 1.0) -> float:
    """Return the largest shift b at which targets that are all 0 are fitted without error.

    All of exp(rate (z_i + b)) underflow to 0.
    """
    return -(float(linear.max(initial=0.0)) + 750.0 / rate)


class LogLink(Explained):
    """Base class of losses whose mean is exp(z), with their common methods."""

    #: Whether targets may be 0.
    takes_zero: ClassVar[bool] = True

    def check_target(self, y: object) -> Array:
        """Return y as float64, all of it >= 0, or > 0."""
        return positive_target(y, self.name, zero=self.takes_zero)

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return exp(z)."""
        return exponential(prediction)

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the rounding error, with |log y|, which is subtracted from z."""
        return rounded(dual, 1.0 + np.abs(log_or_zero(y)), weight)


class PowerVariance(LogLink):
    """Half the deviance where the variance is a power of the mean, with A + B = 1 as ``exponents``.

    loss(y, z) = y^A (expm1(A d) / A + expm1(-B d) / B), d = z - log y, and exp(A z) / A at y = 0:
    the power of the variance is 1 + B. The limits are d for expm1(A d) / A at A = 0 (gamma), and
    -d for expm1(-B d) / B at B = 0 (Poisson). Not for direct use.
    """

    @property
    @abstractmethod
    def exponents(self) -> tuple[float, float]:
        """A >= 0 and B >= 0 with A + B = 1."""

    def best_shift(self, y: Array, linear: Array, weight: Array, start: float) -> float:
        """Return log (sum_i s_i y_i exp(-B z_i) / sum_i s_i exp(A z_i)), the minimum itself."""
        A, B = self.exponents
        is_counted = (weight > 0.0) & (y > 0.0)
        if not is_counted.any():
            return vanishing(linear, A)
        log_numerator = _log_of_sum(-B * linear[is_counted], weight[is_counted] * y[is_counted])
        everywhere = weight > 0.0
        return log_numerator - _log_of_sum(A * linear[everywhere], weight[everywhere])

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return sum_i s_i loss(y_i, z_i)."""
        (A, B) = self.exponents
        z = where_weighted(prediction, weight)
        is_zero = y == 0.0
        d = np.where(is_zero, 0.0, z - log_or_zero(y))
        with np.errstate(over="ignore"):
            losses = _expm1_over(d, A) + _expm1_over(-d, B)
            # Opposite terms nearly cancel around d = 0, where rounding may leave less than 0.
            np.maximum(losses, 0.0, out=losses)
            losses *= y**A
            if is_zero.any():
                losses[is_zero] = np.exp(A * z[is_zero]) / A
            return weighted_sum(weight, losses)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i (exp(A z_i) - y_i exp(-B z_i))."""
        (A, B) = self.exponents
        z = where_weighted(prediction, weight)
        result = exponential(np.minimum(A * z, LARGEST_EXPONENT))
        result -= y * exponential(np.minimum(-B * z, LARGEST_EXPONENT))
        result *= weight
        return result

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i (A exp(A z_i) + B y_i exp(-B z_i))."""
        (A, B) = self.exponents
        z = where_weighted(prediction, weight)
        result = A * exponential(np.minimum(A * z, LARGEST_EXPONENT))
        result += B * y * exponential(np.minimum(-B * z, LARGEST_EXPONENT))
        result *= weight
        return result

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return sum_i s_i sup_z (a_i z - loss(y_i, z)), a_i = u_i / s_i; ``inf`` outside."""
        slope = per_unit_weight(dual, weight)
        conjugates = None if slope is None else self.supremum(slope, y)
        return float("inf") if conjugates is None else weighted_sum(weight, conjugates)

    @abstractmethod
    def supremum(self, slope: Array, y: Array) -> Array | None:
        """Return sup_z (a_i z - loss(y_i, z)) for each i; None if one of them is infinite."""


def _log_of_sum(exponents: Array, factors: Array) -> float:
    """Return log sum_i f_i exp(x_i) for f_i > 0, x = ``exponents``; faster than SciPy's."""
    largest = float(exponents.max())
    if not math.isfinite(largest):
        return largest
    total = float(factors @ np.exp(exponents - largest))
    return largest + math.log(total) if total > 0.0 else -math.inf


def _expm1_over(x: Array, rate: float) -> Array:
    """Return expm1(rate x) / rate, which is x at the limit 0."""
    return np.expm1(rate * x) / rate if rate > 0.0 else x
