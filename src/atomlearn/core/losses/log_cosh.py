"""The log-cosh loss: least squares near 0, absolute deviations far away, smooth everywhere."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from atomlearn.core.interfaces import Array, Loss
from atomlearn.core.losses.domain import slopes_within, weighted_sum
from atomlearn.core.losses.targets import regression_target


class LogCosh(Loss):
    """f(z) = sum_i s_i log cosh(z_i - y_i).

    References
    ----------
    P. J. Huber. Robust estimation of a location parameter. Annals of Mathematical Statistics 35
    (1964) 73-101, doi:10.1214/aoms/1177703732.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import LogCosh
    >>> LogCosh().gradient(np.zeros(2), np.array([0.0, 100.0]), np.ones(2)).tolist()
    [0.0, 1.0]
    """

    name: ClassVar[str] = "log_cosh"
    smoothness: ClassVar[float] = 1.0

    def check_target(self, y: object) -> Array:
        """Return y as finite numbers."""
        return regression_target(y)

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return sum_i s_i (|r_i| + log(1 + exp(-2 |r_i|)) - log 2)."""
        r = np.abs(prediction - y)
        # Near 0 the sum of the three cancels, log(1 + 2 sinh(r / 2)^2) does not.
        near = np.log1p(2.0 * np.sinh(0.5 * np.minimum(r, 1.0)) ** 2)
        far = r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0)
        return weighted_sum(weight, np.where(r < 1.0, near, far))

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i tanh(r_i)."""
        return np.asarray(weight * np.tanh(prediction - y))

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return sum_i u_i y_i + s_i ((1 + a) log(1 + a) + (1 - a) log(1 - a)) / 2, a = u / s."""
        a = slopes_within(-1.0, 1.0, dual, weight)
        if a is None:
            return float("inf")
        inside = np.abs(a) < 1.0
        b = np.where(inside, a, 0.0)
        entropy = 0.5 * ((1.0 + b) * np.log1p(b) + (1.0 - b) * np.log1p(-b))
        return weighted_sum(weight, np.where(inside, entropy, np.log(2.0))) + float(dual @ y)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i (1 - tanh(r_i)^2)."""
        return np.asarray(weight / np.cosh(np.minimum(np.abs(prediction - y), 300.0)) ** 2)
