"""The squared hinge loss: the smooth support vector machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from atomlearn.core.interfaces import Array, Loss, Task
from atomlearn.core.losses.domain import slopes_within, weighted_sum


@final
@dataclass(frozen=True)
class SquaredHinge(Loss):
    """f(z) = sum_i s_i 1/2 max(0, 1 - y_i z_i)^2, y_i in {-1, +1}.

    Tan, Tsang and Wang (2014) minimize (C / 2) sum_i max(0, ...)^2: their C is our sample weight.
    LIBLINEAR has no factor 1/2, so that its C is half of our sample weight.

    Notes
    -----
    The gradient is u_i = -s_i y_i h_i with the shortfall h_i = max(0, 1 - y_i z_i), so a dual point
    has a_i = -y_i u_i / s_i >= 0. There the conjugate is sum_i s_i (a_i^2 / 2 - a_i). Elsewhere it
    is infinite, because the loss never increases with the margin y_i z_i.

    References
    ----------
    .. [T] M. Tan, I. W. Tsang, L. Wang. Towards ultrahigh dimensional feature selection for big
       data. Journal of Machine Learning Research 15 (2014) 1371-1429.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import SquaredHinge
    >>> y, s = np.array([1.0, -1.0]), np.ones(2)
    >>> SquaredHinge().gradient(y, np.array([0.5, -2.0]), s).tolist()
    [-0.5, 0.0]
    """

    name: ClassVar[str] = "squared_hinge"
    task: ClassVar[Task] = "classification"
    dispersed: ClassVar[bool] = False
    curvature_bounds: ClassVar[tuple[float, float]] = 0.0, 1.0

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z) = sum_i s_i 1/2 h_i^2 of the shortfalls h_i = max(0, 1 - y_i z_i).

        z = ``prediction``, y are the targets, and s = ``weight`` the sample weights.
        """
        shortfall = _shortfall(y, prediction)
        shortfall *= shortfall
        return 0.5 * weighted_sum(weight, shortfall)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient -s_i y_i h_i, (n_samples,), with h_i = max(0, 1 - y_i z_i).

        z = ``prediction``, y are the targets, and s = ``weight`` the sample weights.
        """
        result = _shortfall(y, prediction)
        result *= y
        result *= weight
        np.negative(result, out=result)
        return result

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) = sum_i s_i a_i (a_i / 2 - 1) with a_i = -y_i u_i / s_i, for u = ``dual``.

        y are the targets, and s = ``weight`` the sample weights. The result is ``inf`` if some a_i
        < 0.
        """
        shortfall = slopes_within(0.0, np.inf, -y * dual, weight)
        if shortfall is None:
            return float("inf")
        losses = 0.5 * shortfall
        losses -= 1.0
        losses *= shortfall
        return weighted_sum(weight, losses)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f'' at z = ``prediction``, (n_samples,): s_i if y_i z_i <= 1, else 0.

        At y_i z_i = 1 it is the larger of the two one-sided second derivatives. y are the targets,
        and s = ``weight`` the sample weights.
        """
        return np.where(y * prediction <= 1.0, weight, 0.0)


def _shortfall(y: Array, prediction: Array) -> Array:
    """Return h_i = max(0, 1 - y_i z_i), (n_samples,): how far a margin is below 1.

    y : labels -1 and +1; z = ``prediction``.
    """
    result = y * prediction
    np.subtract(1.0, result, out=result)
    np.maximum(result, 0.0, out=result)
    return result
