"""The Poisson loss, for counts and rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy.special import xlogy

from atomlearn.core.interfaces import Array
from atomlearn.core.losses.domain import EDGE_TOLERANCE
from atomlearn.core.losses.log_link import PowerVariance, or_one


@final
@dataclass(frozen=True)
class Poisson(PowerVariance):
    """f(z) = sum_i s_i (exp(z_i) - y_i z_i + y_i log y_i - y_i), y_i >= 0, mean exp(z_i).

    It is half the deviance, which is never negative, and equals minus the log-likelihood up to a
    constant. Rates may be given in two ways, with the same fit: as counts per exposure, weighted by
    the exposures; or as counts, with the logarithms of the exposures as ``offset``.

    Notes
    -----
    The gradient is u_i = s_i (exp(z_i) - y_i), so that a dual point has m_i = y_i + u_i / s_i >= 0.
    There the conjugate is sum_i s_i (m_i log m_i - m_i - y_i log y_i + y_i); elsewhere it is
    infinite. The curvature exp(z_i) has no bound, so solvers use a line search.

    If all counts are zero, the best intercept is -infinity. A fit then ends at an intercept whose
    mean underflows to 0.

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
        """A = 1 and B = 0, the exponents of the loss; the variance is the mean."""
        return 1.0, 0.0

    def supremum(self, slope: Array, y: Array) -> Array | None:
        """Return sup_z (a z - loss(y, z)) of each sample, (n_samples,), for a = ``slope``.

        It is m log m - m - y log y + y with m = y + a >= 0; None if some m < 0. Changes ``slope``.
        y : counts.
        """
        # "Not all inside" instead of "any outside", because no comparison holds for NaN.
        if not np.all(slope >= -y * (1.0 + EDGE_TOLERANCE)):
            return None
        np.maximum(slope, -y, out=slope)
        zeros = np.flatnonzero(y == 0.0)
        # Near slope = 0 the logarithm of the ratio is used, so that no digits cancel. The ratio is
        # kept one floating-point number above -1, so that 0 is multiplied by a finite logarithm.
        amounts = or_one(y)
        ratio = slope / amounts
        np.maximum(ratio, np.nextafter(-1.0, 0.0), out=ratio)
        result = (y + slope) * np.log1p(ratio) + slope * (np.log(amounts) - 1.0)
        a = slope[zeros]
        result[zeros] = xlogy(a, a) - a
        return np.asarray(result)
