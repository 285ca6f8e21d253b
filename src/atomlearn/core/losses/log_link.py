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
from atomlearn.core.losses.domain import (
    LARGEST_EXPONENT,
    per_unit_weight,
    weighted_sum,
    where_weighted,
)
from atomlearn.core.losses.shift import Explained


def or_one(y: Array) -> Array:
    """Return y, with 1 in place of 0: its logarithms and quotients are not used at y = 0."""
    return np.asarray(y + (y == 0.0))


def vanishing(linear: Array, rate: float = 1.0) -> float:
    """Return the largest shift b at which targets that are all 0 are fitted without error.

    All of exp(rate (z_i + b)) underflow to 0, with z = ``linear``.
    """
    # exp(-750) underflows to 0.
    return -(float(linear.max(initial=0.0)) + 750.0 / rate)


class LogLink(Explained):
    """Base class of losses whose mean is exp(z), with their common methods."""

    #: Whether targets may be 0.
    takes_zero: ClassVar[bool] = True

    def check_target(self, y: object) -> Array:
        """Return y as float64; raise ValueError unless all y >= 0, or > 0 if not ``takes_zero``."""
        return positive_target(y, self.name, zero=self.takes_zero)

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return exp(z) at z = ``prediction``, the expected target; it may be infinite."""
        with np.errstate(over="ignore"):
            result: NDArray[Any] = np.exp(prediction)
        return result

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the rounding error of f(z) + f*(u) for u = ``dual``.

        log y is subtracted from z in both, so the error is that of a product <u, 1 + |log y|>.
        y : targets; weight : sample weights; ``prediction`` has no effect.
        """
        return rounded(dual, 1.0 + np.abs(np.log(or_one(y))), weight)


class PowerVariance(LogLink):
    """Base class of losses that are half a deviance whose variance is a power of the mean.

    loss(y, z) = y^A (expm1(A d) / A + expm1(-B d) / B) with d = z - log y, and exp(A z) / A at
    y = 0. ``exponents`` are A and B with A + B = 1, and the variance is mean^(1 + B). At A = 0
    (gamma) the term expm1(A d) / A is its limit d, and at B = 0 (Poisson) expm1(-B d) / B is -d.
    """

    @property
    @abstractmethod
    def exponents(self) -> tuple[float, float]:
        """A >= 0 and B >= 0 with A + B = 1; the variance is mean^(1 + B)."""

    def best_shift(self, y: Array, linear: Array, weight: Array, start: float) -> float:
        """Return argmin_b f(z + b), z = ``linear``, by a formula; s = ``weight``.

        It is log (sum_i s_i y_i exp(-B z_i) / sum_i s_i exp(A z_i)). If all targets are 0, it is a
        shift at which all means underflow. ``start`` is not needed. A and B are ``exponents``.
        """
        A, B = self.exponents
        is_positive = (weight > 0.0) & (y > 0.0)
        if not is_positive.any():
            return vanishing(linear, A)
        log_numerator = _log_of_sum(-B * linear[is_positive], weight[is_positive] * y[is_positive])
        is_weighted = weight > 0.0
        return log_numerator - _log_of_sum(A * linear[is_weighted], weight[is_weighted])

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z) = sum_i s_i loss(y_i, z_i) at z = ``prediction``.

        y are the targets, and s = ``weight`` the sample weights. With A, B = ``exponents`` and d =
        z - log y, loss(y, z) = y^A (expm1(A d) / A + expm1(-B d) / B), and exp(A z) / A at y = 0.
        """
        (A, B) = self.exponents
        z = where_weighted(prediction, weight)
        amounts = or_one(y)
        d = z - np.log(amounts)
        with np.errstate(over="ignore"):
            losses = _expm1_over(d, A) + _expm1_over(-d, B)
            # Opposite terms nearly cancel around d = 0, where rounding may leave less than 0.
            np.maximum(losses, 0.0, out=losses)
            losses *= amounts**A
            # Gamma (A = 0) has no targets y = 0, so that nothing is divided by A = 0.
            zeros = np.flatnonzero(y == 0.0)
            losses[zeros] = np.exp(A * z[zeros]) / (A or 1.0)
            return weighted_sum(weight, losses)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient s_i (exp(A z_i) - y_i exp(-B z_i)) at z = ``prediction``.

        It has shape (n_samples,). y are the targets, and s = ``weight`` the sample weights.
        Exponents that are too large are cut: see ``LARGEST_EXPONENT``. A and B are ``exponents``.
        """
        (A, B) = self.exponents
        z = where_weighted(prediction, weight)
        result = _cut_power(z, A) - y * _cut_power(z, -B)
        result *= weight
        return result

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f'' at z = ``prediction``: s_i (A exp(A z_i) + B y_i exp(-B z_i)), (n_samples,).

        y are the targets, and s = ``weight`` the sample weights. A and B are ``exponents``.
        """
        (A, B) = self.exponents
        z = where_weighted(prediction, weight)
        result = A * _cut_power(z, A) + B * y * _cut_power(z, -B)
        result *= weight
        return result

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) = sum_i s_i sup_z (a_i z - loss(y_i, z)) with a_i = u_i / s_i, u = ``dual``.

        It is ``inf`` if some supremum is, or if u_i != 0 for a sample of weight 0. y are the
        targets, and s = ``weight`` the sample weights.
        """
        slope = per_unit_weight(dual, weight)
        conjugates = None if slope is None else self.supremum(slope, y)
        return float("inf") if conjugates is None else weighted_sum(weight, conjugates)

    @abstractmethod
    def supremum(self, slope: Array, y: Array) -> Array | None:
        """Return sup_z (a z - loss(y, z)) of each sample, (n_samples,), for a = ``slope``.

        None if one of them is infinite.
        """


def _log_of_sum(exponents: Array, factors: Array) -> float:
    """Return log sum_i f_i exp(x_i) for factors f_i > 0 and x = ``exponents``.

    The largest exponent is subtracted first. It is faster than SciPy's logsumexp.
    """
    largest = float(exponents.max())
    if not math.isfinite(largest):
        return largest
    total = float(factors @ np.exp(exponents - largest))
    return largest + math.log(total) if total > 0.0 else -math.inf


def _expm1_over(x: Array, rate: float) -> Array:
    """Return expm1(rate x) / rate for each entry of x, and its limit x at rate = 0."""
    return np.expm1(rate * x) / rate if rate > 0.0 else x


def _cut_power(z: Array, rate: float) -> Array | float:
    """Return exp(rate z), with exponents cut at ``LARGEST_EXPONENT``; 1 at rate = 0."""
    if not rate:
        return 1.0
    exponents = rate * z
    np.minimum(exponents, LARGEST_EXPONENT, out=exponents)
    return np.asarray(np.exp(exponents, out=exponents))
