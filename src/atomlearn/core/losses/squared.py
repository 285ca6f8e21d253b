"""The squared loss, for regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from atomlearn.core.interfaces import Array, Loss
from atomlearn.core.losses.domain import per_unit_weight, weighted_sum


@final
@dataclass(frozen=True)
class Squared(Loss):
    """f(z) = sum_i s_i 1/2 (z_i - y_i)^2, for targets that are any numbers.

    Notes
    -----
    The conjugate is f*(u) = sup_z <u, z> - f(z). Here the supremum is at z_i = y_i + u_i / s_i for
    any u, and f*(u) = sum_i u_i^2 / (2 s_i) + u_i y_i.

    References
    ----------
    S. Boyd, L. Vandenberghe. Convex Optimization. Cambridge University Press, 2004; 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Squared
    >>> y, s = np.array([1.0, 3.0]), np.ones(2)
    >>> Squared().value(y, np.array([2.0, 3.0]), s), Squared().gradient(y, np.zeros(2), s)
    (0.5, array([-1., -3.]))
    """

    name: ClassVar[str] = "squared"
    curvature_bounds: ClassVar[tuple[float, float]] = 1.0, 1.0
    translates: ClassVar[bool] = True

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z) = sum_i s_i 1/2 (z_i - y_i)^2 at z = ``prediction``.

        y are the targets, and s = ``weight`` the sample weights.
        """
        residual = prediction - y
        residual *= residual
        return 0.5 * weighted_sum(weight, residual)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient s_i (z_i - y_i), (n_samples,), at z = ``prediction``.

        y are the targets, and s = ``weight`` the sample weights.
        """
        residual = prediction - y
        residual *= weight
        return residual

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) = sum_i u_i (u_i / (2 s_i) + y_i), for u = ``dual``.

        y are the targets, and s = ``weight`` the sample weights. It is ``inf`` only if some s_i = 0
        has u_i != 0.
        """
        residual = per_unit_weight(dual, weight)
        if residual is None:
            return float("inf")
        residual *= 0.5
        residual += y
        return float(dual.dot(residual))

    def best_shift(self, y: Array, linear: Array, weight: Array, start: float) -> float:
        """Return argmin_b f(linear + b): the weighted mean of the residuals y - linear.

        It is exact, so that ``start`` is not needed. y : targets; ``weight`` : sample weights.
        """
        return weighted_sum(weight, y - linear) / float(weight.sum())

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f'', which is ``weight`` at any ``prediction`` and ``y``, (n_samples,): a copy."""
        return np.array(weight, dtype=np.float64)
