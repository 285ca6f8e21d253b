"""The Tweedie losses, for many zeros and positive amounts, and the gamma loss at their limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy.special import xlogy

from atomlearn.core.interfaces import Array, positive
from atomlearn.core.losses.domain import EDGE_TOLERANCE
from atomlearn.core.losses.log_link import PowerVariance


@final
@dataclass(frozen=True)
class Tweedie(PowerVariance):
    """f(z) = sum_i s_i (exp((2-p) z_i) / (2-p) + y_i exp(-(p-1) z_i) / (p-1) - c(y_i)), 1 < p < 2.

    Half the deviance of a compound Poisson-gamma distribution, whose variance is mean^p, with the
    logarithm for link. Examples are total claims and rainfall. Targets are 0 or positive. c(y)
    makes the minimum value of each term 0.

    Parameters
    ----------
    power : float
        p, between 1 (where the loss is ``Poisson``) and 2 (``Gamma``). Outside of [1, 2] the loss
        with the logarithm for link is not convex; power 0 is ``Squared``, with the identity.

    Notes
    -----
    The gradient is u_i = s_i (exp((2-p) z_i) - y_i exp(-(p-1) z_i)). The conjugate has no formula.
    Newton steps between two bounds find the z_i where the derivative is u_i / s_i, to the last
    digit. The error of the supremum is of the order of the square of the error of z_i.

    References
    ----------
    B. Jorgensen. Exponential dispersion models. Journal of the Royal Statistical Society B 49
    (1987) 127-162.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Tweedie
    >>> y, s = np.array([0.0, 4.0]), np.ones(2)
    >>> Tweedie(1.5).gradient(y, np.zeros(2), s).tolist()
    [1.0, -3.0]
    """

    power: float = 1.5
    name: ClassVar[str] = "tweedie"

    def __post_init__(self) -> None:
        """Raise ValueError unless 1 < power < 2."""
        power = positive("Tweedie: power", self.power)
        if not 1.0 < power < 2.0:
            raise ValueError(
                f"Tweedie: power must be between 1 and 2, got {self.power!r}; power 1 is "
                "losses.Poisson(), 2 losses.Gamma(), 0 losses.Squared(), and others are not convex"
            )

    @property
    def exponents(self) -> tuple[float, float]:
        """A = 2 - p and B = p - 1, the exponents of the loss; the variance is mean^p."""
        return 2.0 - self.power, self.power - 1.0

    def supremum(self, slope: Array, y: Array) -> Array | None:
        """Return sup_z (a z - loss(y, z)) of each sample, (n_samples,), for a = ``slope``.

        The supremum is at the z where the derivative of the loss is a; z = log y + d, with d of
        ``_distance``. At y = 0 it is (a log a - a) / (2 - p). The result is None if some supremum
        is infinite: a < 0 at y = 0. y : targets >= 0.
        """
        A, B = self.exponents
        is_positive = y > 0.0
        # At y = 0 the loss is exp(A z) / A, which has no negative slopes.
        # "Not all inside" instead of "any outside", because no comparison holds for NaN.
        if not (np.all(slope[~is_positive] >= 0.0) and np.isfinite(slope).all()):
            return None
        result = np.empty_like(slope)
        a = slope[~is_positive]
        result[~is_positive] = (xlogy(a, a) - a) / A
        a = slope[is_positive]
        amounts = y[is_positive]
        # With z = log y + d, the derivative is y^A (exp(A d) - exp(-B d)).
        scale = amounts**A
        d = _distance(a / scale, A, B)
        with np.errstate(over="ignore"):
            difference = np.expm1(A * d) / A + np.expm1(-B * d) / B
        result[is_positive] = a * np.log(amounts) + a * d - scale * np.maximum(difference, 0.0)
        return result


def _distance(r: Array, A: float, B: float) -> Array:
    """Return d with exp(A d) - exp(-B d) = r, for each entry of r, by safeguarded Newton steps.

    A, B > 0 are the exponents of the loss. d is between 0 and log1p(r) / A for r >= 0, and between
    -log1p(-r) / B and 0 for r < 0. One of the two terms is between 0 and 1 there, and the other one
    between abs(r) and abs(r) + 1.
    """
    is_nonnegative = r >= 0.0
    log1p_r = np.log1p(np.abs(r))
    low = np.where(is_nonnegative, 0.0, -log1p_r / B)
    high = np.where(is_nonnegative, log1p_r / A, 0.0)
    d = np.where(is_nonnegative, high, low)
    with np.errstate(over="ignore"):
        for _ in range(80):
            error = np.expm1(A * d) - np.expm1(-B * d) - r
            # The root is above d if the error is negative, else below d.
            low = np.where(error < 0.0, d, low)
            high = np.where(error > 0.0, d, high)
            step = error / (A * np.exp(A * d) + B * np.exp(-B * d))
            next_d = d - step
            # A Newton step that leaves the bracket is replaced by bisection.
            outside = ~((low <= next_d) & (next_d <= high))
            next_d = np.where(outside, 0.5 * (low + high), next_d)
            is_moving = np.abs(next_d - d) > 2e-16 * np.abs(d)
            d = next_d
            if not is_moving.any():
                break
    return d


@final
@dataclass(frozen=True)
class Gamma(PowerVariance):
    """f(z) = sum_i s_i (y_i exp(-z_i) + z_i - 1 - log y_i), y_i > 0, mean exp(z_i).

    Half the deviance of the gamma distribution with the logarithm for link, which makes it convex.
    (The reciprocal link does so, too, but its means could be negative.)

    Notes
    -----
    The gradient is u_i = s_i (1 - y_i exp(-z_i)), so that a dual point has
    m_i = 1 - u_i / s_i >= 0. There the conjugate is
    sum_i s_i (m_i log m_i - m_i + 1) + u_i log y_i; elsewhere it is infinite.

    References
    ----------
    P. McCullagh, J. A. Nelder. Generalized Linear Models. 2nd edition, Chapman and Hall, 1989;
    chapter 8.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Gamma
    >>> y, s = np.array([1.0, 4.0]), np.ones(2)
    >>> Gamma().gradient(y, np.zeros(2), s).tolist()
    [0.0, -3.0]
    """

    name: ClassVar[str] = "gamma"
    takes_zero: ClassVar[bool] = False

    @property
    def exponents(self) -> tuple[float, float]:
        """A = 0 and B = 1, the exponents of the loss; the variance is mean^2."""
        return 0.0, 1.0

    def supremum(self, slope: Array, y: Array) -> Array | None:
        """Return sup_z (a z - loss(y, z)) of each sample, (n_samples,), for a = ``slope``.

        It is m log m - m + 1 + a log y with m = 1 - a >= 0; None if some a > 1. Changes ``slope``.
        y : targets > 0.
        """
        # "Not all inside" instead of "any outside", because no comparison holds for NaN.
        if not np.all(slope <= 1.0 + EDGE_TOLERANCE):
            return None
        np.minimum(slope, 1.0, out=slope)
        log_rest = np.log1p(-slope, out=np.zeros_like(slope), where=slope < 1.0)
        result = (1.0 - slope) * log_rest
        result += slope
        result += xlogy(slope, y)
        return np.asarray(result)
