"""The Poisson loss, for counts and rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy.special import xlog1py, xlogy

from atomlearn.core.interfaces import Array
from atomlearn.core.losses.domain import EDGE_TOLERANCE
from atomlearn.core.losses.log_link import PowerVariance


@final
@dataclass(frozen=True)
class Poisson(PowerVariance):
    """f(z) = sum_i s_i (exp(z_i) - y_i z_i + y_i log y_i - y_i), y_i >= 0, mean exp(z_i).

    Half the deviance, which is never negative; less a constant it is minus the log-likelihood.
    Rates are counts per exposure with the exposures for weights, or counts with ``offset`` the
    logarithms of the exposures: both are the same fit.

    Notes
    -----
    The gradient is u_i = s_i (exp(z_i) - y_i), so that a dual point has m_i = y_i + u_i / s_i >= 0.
    There the conjugate is sum_i s_i (m_i log m_i - m_i - y_i log y_i + y_i); elsewhere infinite.
    The curvature exp(z_i) has no bound: solvers search for their steps.

    Where all counts are zero the best intercept is -infinity. A fit then ends at one whose mean
    underflows to 0.

    References
    ----------
    P. McCullagh, J. A. Nelder. Generalized Linear Models. 2nd edition, Chapman and Hall, 1989;
    chapter 6.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Poisson
    >>> y, s = np.array([0.0, 3.0]), np.ones(2)
    >>> Poisson().gradient(y, np.zeros(2), s).tolist(), Poisson().value(y[1:], np.log(y[1:]), s[1:])
    ([1.0, -2.0], 0.0)
    """

    name: ClassVar[str] = "poisson"
    dispersed: ClassVar[bool] = False

    @property
    def exponents(self) -> tuple[float, float]:
        """A = 1 and B = 0: the variance is the mean."""
        return 1.0, 0.0

    def supremum(self, slope: Array, y: Array) -> Array | None:
        """Return m log m - m - y log y + y at m = y + slope >= 0."""
        # Written as "not all inside" rather than "any outside", so that NaN counts as outside.
        if not np.all(slope >= -y * (1.0 + EDGE_TOLERANCE)):
            return None
        np.maximum(slope, -y, out=slope)
        is_zero = y == 0.0
        result = -slope
        result[is_zero] += xlogy(slope[is_zero], slope[is_zero])
        m = y[~is_zero]
        a = slope[~is_zero]
        # Near slope = 0 the logarithm of the ratio is used, so that no digits cancel.
        result[~is_zero] += xlog1py(m + a, a / m) + a * np.log(m)
        return np.asarray(result)
