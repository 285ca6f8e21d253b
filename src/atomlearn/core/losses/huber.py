"""The Huber loss: least squares in which outliers have bounded influence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from atomlearn.core.interfaces import positive
from atomlearn.core.losses.clipped import ClippedSlopes


@final
@dataclass(frozen=True)
class Huber(ClippedSlopes):
    """f(z) = sum_i s_i h(z_i - y_i), where h is quadratic near 0 and linear beyond.

    h(r) = r^2 / 2 for abs(r) <= delta, else delta abs(r) - delta^2 / 2.

    Parameters
    ----------
    delta : float, default=1.345
        The residual, in units of y, beyond which the slope of the loss is constant. At 1.345
        standard deviations of normal noise, the efficiency is 95% of that of least squares.

    Notes
    -----
    A dual point has a_i = u_i / s_i in [-delta, delta]. There the conjugate is the same as for the
    squared loss, sum_i s_i a_i^2 / 2 + u_i y_i; elsewhere it is infinite. ``HuberRegressor`` of
    scikit-learn fits the scale of the noise too; here delta is fixed.

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
    curvature_bounds: ClassVar[tuple[float, float]] = 0.0, 1.0

    def __post_init__(self) -> None:
        """Raise ValueError unless delta is a positive number."""
        positive("Huber: delta", self.delta)

    @property
    def slopes(self) -> tuple[float, float, float]:
        """(low, high, width) of ``ClippedSlopes``: -delta, delta, and the width 1."""
        return -float(self.delta), float(self.delta), 1.0
