"""The negative binomial loss, for counts that spread more than Poisson's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy.special import expit, xlogy

from atomlearn.core.interfaces import Array, positive
from atomlearn.core.losses.domain import (
    EDGE_TOLERANCE,
    per_unit_weight,
    weighted_sum,
    where_weighted,
)
from atomlearn.core.losses.log_link import LogLink, or_one, vanishing


@final
@dataclass(frozen=True)
class NegativeBinomial(LogLink):
    """f(z) = sum_i s_i ((y_i + theta) log((m_i + theta) / (y_i + theta)) - y_i log(m_i / y_i)).

    Half the deviance of counts y_i >= 0 with mean m_i = exp(z_i) and variance m_i + m_i^2 / theta.
    For a *given* theta it is convex in z with the logarithm for link, as log(exp(z) + theta) is
    convex and the rest linear. (It is not convex over theta and z together. With the canonical link
    log(m / (m + theta)), predictions would have to stay below 0.) Choose theta by cross-validation,
    or from a fit of another package.

    Parameters
    ----------
    theta : float, default=1.0
        Shape; ``1 / theta`` is the alpha of statsmodels. A large theta is nearly ``Poisson``.

    Notes
    -----
    With q_i = m_i / (m_i + theta) the gradient is u_i = s_i ((y_i + theta) q_i - y_i), so that a
    dual point has a_i = u_i / s_i in [-y_i, theta]. There the conjugate is the sum of
    s_i ((a_i + y_i) log(1 + a_i / y_i) + (theta - a_i) log(1 - a_i / theta)) + u_i log y_i, and
    elsewhere it is infinite.

    References
    ----------
    J. M. Hilbe. Negative Binomial Regression. 2nd edition, Cambridge University Press, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import NegativeBinomial
    >>> y, s = np.array([0.0, 3.0]), np.ones(2)
    >>> NegativeBinomial(theta=1.0).gradient(y, np.zeros(2), s).tolist()
    [0.5, -1.0]
    """

    theta: float = 1.0
    name: ClassVar[str] = "negative_binomial"
    dispersed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise ValueError unless theta is a positive number."""
        positive("NegativeBinomial: theta", self.theta)

    def best_shift(self, y: Array, linear: Array, weight: Array, start: float) -> float:
        """Return ``start``, since argmin_b f(linear + b) has no formula.

        If all counts are 0, the result is a shift at which all means underflow to 0. linear : the
        predictions without b. y : targets; ``weight`` : sample weights.
        """
        all_zero = not np.any((y > 0.0) & (weight > 0.0))
        return vanishing(linear) - abs(np.log(self.theta)) if all_zero else start

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z) at z = ``prediction``: half the deviance, never negative; s = ``weight``.

        The class has the formula. y : counts.
        """
        z = where_weighted(prediction, weight)
        theta = float(self.theta)
        is_positive = y > 0.0
        smaller = np.minimum(y, theta)
        d = np.where(is_positive, z - np.log(or_one(y)), 0.0)
        # With d = log(m / y), the loss is (y + theta) log((theta + y exp(d)) / (theta + y)) - y d.
        # Exchanging y and theta and changing the sign of d does not change it. So the smaller of
        # the two replaces y, and x is d or -d, which avoids cancellation.
        share = smaller / (y + theta)
        x = np.where(y < theta, d, -d)
        # log(1 - share + share exp(x)), by a formula that is accurate near 0 and one that does not
        # overflow far from it.
        near = np.log1p(share * np.expm1(np.minimum(x, 1.0)))
        far = np.logaddexp(np.log1p(-share), x + np.log(or_one(share)))
        losses = (y + theta) * np.where(x < 1.0, near, far) - smaller * x
        np.maximum(losses, 0.0, out=losses)
        losses[~is_positive] = theta * np.logaddexp(0.0, z[~is_positive] - np.log(theta))
        return weighted_sum(weight, losses)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient s_i (theta q_i - y_i (1 - q_i)), (n_samples,), at z = ``prediction``.

        q_i = m_i / (m_i + theta) with the mean m_i = exp(z_i). y are the targets, and
        s = ``weight`` the sample weights.
        """
        # With x = z - log theta, q = expit(x) and 1 - q = expit(-x).
        x = where_weighted(prediction, weight) - np.log(self.theta)
        result = self.theta * expit(x)
        result -= y * expit(-x)
        result *= weight
        return np.asarray(result)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f'' at z = ``prediction``, (n_samples,): s_i (y_i + theta) q_i (1 - q_i).

        q_i = m_i / (m_i + theta) with the mean m_i = exp(z_i). y are the targets, and
        s = ``weight`` the sample weights.
        """
        # With x = z - log theta, q = expit(x) and 1 - q = expit(-x).
        x = where_weighted(prediction, weight) - np.log(self.theta)
        result = (y + self.theta) * expit(x) * expit(-x)
        result *= weight
        return np.asarray(result)

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) for u = ``dual``, ``inf`` if some a_i = u_i / s_i is not in [-y_i, theta].

        y are the targets, and s = ``weight`` the sample weights. f*(u) is the sum of s_i ((a_i +
        y_i) log(1 + a_i / y_i) + (theta - a_i) log(1 - a_i / theta)) + u_i log y_i.
        """
        a = per_unit_weight(dual, weight)
        theta = float(self.theta)
        # None: u_i != 0 for a sample of weight 0.
        if a is None:
            return float("inf")
        # "Not all inside" instead of "any outside", because no comparison holds for NaN.
        edge = 1.0 + EDGE_TOLERANCE
        if not np.all((a >= -edge * y) & (a <= edge * theta)):
            return float("inf")
        np.clip(a, -y, theta, out=a)
        # The formula of the docstring for y > 0, and its limit a log a for y = 0.
        is_positive = y > 0.0
        ratio = np.divide(a, y, out=np.zeros_like(y), where=is_positive)
        conjugates = np.where(
            is_positive, (a + y) * _log1p(ratio) + a * np.log(or_one(y)), xlogy(a, a)
        )
        conjugates += (theta - a) * _log1p(-a / theta)
        return weighted_sum(weight, conjugates)


def _log1p(x: Array) -> Array:
    """Return log(1 + x) for x >= -1, but 0 instead of -inf at -1: callers multiply it by 0."""
    return np.log1p(x, out=np.zeros_like(x), where=x > -1.0)
