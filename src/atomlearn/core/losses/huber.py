"""The Huber loss: least squares that outliers do not pull."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from atomlearn.core.interfaces import Array, Loss, positive_number
from atomlearn.core.losses.deviance import deviance_explained
from atomlearn.core.losses.domain import EDGE_TOLERANCE, per_unit_weight, weighted_sum
from atomlearn.core.losses.quantiles import weighted_quantile
from atomlearn.core.losses.targets import regression_target


@final
@dataclass(frozen=True)
class Huber(Loss):
    """f(z) = sum_i s_i h(z_i - y_i), r^2 / 2 near 0, linear beyond.

    h(r) = r^2 / 2 for abs(r) <= delta, else delta abs(r) - delta^2 / 2.

    Parameters
    ----------
    delta : float, default=1.345
        Residuals beyond it pull with the constant force delta: in units of y. At 1.345 standard
        deviations of normal noise 5% of the efficiency of least squares is given up.

    Notes
    -----
    A dual point has a_i = u_i / s_i in [-delta, delta]; there the conjugate is that of the squared
    loss, sum_i s_i a_i^2 / 2 + u_i y_i, and elsewhere it is infinite. ``HuberRegressor`` of
    scikit-learn fits the scale of the noise too; here delta is what it is.

    References
    ----------
    P. J. Huber. Robust estimation of a location parameter. Annals of Mathematical Statistics 35
    (1964) 73-101, doi:10.1214/aoms/1177703732.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Huber
    >>> y, s = np.array([0.0, 10.0]), np.ones(2)
    >>> Huber(delta=1.5).gradient(y, np.ones(2), s).tolist()
    [1.0, -1.5]
    """

    delta: float = 1.345
    name: ClassVar[str] = "huber"
    in_kernel: ClassVar[str] = "huber"
    translates: ClassVar[bool] = True
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        positive_number("Huber", "delta", self.delta)

    @property
    def kernel_shape(self) -> float:  # type: ignore[override]
        """The delta."""
        return float(self.delta)

    def check_target(self, y: object) -> Array:
        """Return y as float64; any finite numbers will do."""
        return regression_target(y)

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return sum_i s_i h(z_i - y_i)."""
        size = np.abs(prediction - y)
        inner = np.minimum(size, self.delta)
        size -= 0.5 * inner
        size *= inner
        return weighted_sum(weight, size)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i times the residual z_i - y_i, cut at +-delta."""
        residual = prediction - y
        np.clip(residual, -self.delta, self.delta, out=residual)
        residual *= weight
        return residual

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return sum_i u_i (u_i / (2 s_i) + y_i), ``inf`` where some abs(u_i / s_i) > delta."""
        residual = per_unit_weight(dual, weight)
        # "not all inside" rather than "any outside": a NaN is outside too.
        largest = self.delta * (1.0 + EDGE_TOLERANCE)
        if residual is None or not np.all(np.abs(residual) <= largest):
            return float("inf")
        residual *= 0.5
        residual += y
        return float(dual @ residual)

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i where abs(z_i - y_i) <= delta, the kinks included, else 0."""
        return np.where(np.abs(prediction - y) <= self.delta, weight, 0.0)

    def align(self, y: Array, prediction: Array, target: Array) -> Array:
        """Return z_i within delta of y_i, else the point beyond that is nearest to target_i."""
        above, below = y + self.delta, y - self.delta
        # As floats, too, these are to be points where the residual is cut.
        above = np.where(above - y < self.delta, np.nextafter(above, np.inf), above)
        below = np.where(y - below < self.delta, np.nextafter(below, -np.inf), below)
        residual = prediction - y
        result = np.where(residual >= self.delta, np.maximum(target, above), prediction)
        return np.where(residual <= -self.delta, np.minimum(target, below), result)

    @property
    def straight_beyond(self) -> float:
        """Delta."""
        return self.delta

    def eased(self, width: float) -> tuple[Loss, float]:
        """Return the loss that is straight beyond ``width``; the factor makes its slopes these."""
        return Huber(width), self.delta / width

    def translation(self, y: Array, weight: Array) -> float:
        """Return the weighted median of y."""
        return weighted_quantile(y, weight, 0.5)

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return the share of the loss of the best constant that is explained."""
        return deviance_explained(self, y, prediction, weight)

    @property
    def score_name(self) -> str:
        """What ``score`` is called."""
        return "D^2"
