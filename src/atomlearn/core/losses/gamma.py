"""The gamma loss, for positive quantities whose spread grows with their mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy.special import xlogy

from atomlearn.core.interfaces import Array
from atomlearn.core.losses.domain import EDGE_TOLERANCE
from atomlearn.core.losses.log_link import PowerVariance
from atomlearn.core.losses.targets import positive_target


@final
@dataclass(frozen=True)
class Gamma(PowerVariance):
    """f(z) = sum_i s_i (y_i exp(-z_i) + z_i - 1 - log y_i), y_i > 0, mean exp(z_i).

    Half the deviance of the gamma distribution with the logarithm for link, under which it is
    convex (with the reciprocal link it is too, but means could be negative).

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
    smoothness: ClassVar[float] = float("inf")

    @property
    def exponents(self) -> tuple[float, float]:
        """0 and 1: the variance is the square of the mean."""
        return 0.0, 1.0

    def check_target(self, y: object) -> Array:
        """Return y as float64, all of it > 0."""
        return positive_target(y, self.name, zero=False)

    def supremum(self, slope: Array, y: Array) -> Array | None:
        """Return m log m - m + 1 + slope log y of m = 1 - slope >= 0."""
        # "not all inside" rather than "any outside": a NaN is outside too.
        if not np.all(slope <= 1.0 + EDGE_TOLERANCE):
            return None
        np.minimum(slope, 1.0, out=slope)
        log_rest = np.log1p(-slope, out=np.zeros_like(slope), where=slope < 1.0)
        result = (1.0 - slope) * log_rest
        result += slope
        result += xlogy(slope, y)
        return np.asarray(result)
