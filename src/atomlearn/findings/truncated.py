"""A normal variable that is only seen on a part of the line: what one value says of its mean.

b ~ N(theta, error^2) is kept where b + x lies in sets of intervals that are *known* to be kept;
of sets that are *open* it is not known. F(theta) = P(b <= what was found | kept) falls in theta. An
interval takes of each open set what makes it longer, so that it covers whatever is true there.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erf, erfcx, expit

from atomlearn.core.interfaces import Array
from atomlearn.findings.carving import Found, inverted

#: Standard errors from what was found beyond which an end of an interval is called infinite.
FARTHEST = 1e6


def truncated(b: float, error: float, known: Array, unknown: Array, level: float) -> Found:
    """Return what b says of its mean; ``known``, ``unknown`` : (m, 2) in units of b less b.

    References
    ----------
    J. Lee, D. Sun, Y. Sun, J. Taylor. Exact post-selection inference, with application to the
    lasso. Annals of Statistics 44 (2016) 907-927.
    """
    pieces = [np.clip(ends / error, *side) for ends in (known, unknown)
              for side in ((-np.inf, 0.0), (0.0, np.inf))]  # fmt: skip

    def odds(shifts: Array) -> Array:
        """Return log F / (1 - F) at three means: with open sets left out, against, for b."""
        below, above, more_below, more_above = (_log_masses(ends, shifts) for ends in pieces)
        below[..., 2] = np.logaddexp(below[..., 2], more_below[..., 2])
        above[..., 1] = np.logaddexp(above[..., 1], more_above[..., 1])
        return np.asarray(below - above)

    shares = np.array([0.5, (1 + level) / 2, (1 - level) / 2])
    found = inverted(lambda shifts: expit(odds(shifts)), shares, FARTHEST)
    value, low, high = (b + error * found).tolist()
    _, least, most = odds(np.full(3, -b / error))
    return value, low, high, float(min(2 * min(expit(most), expit(-least)), 1.0))


def _log_masses(ends: Array, shifts: Array) -> Array:
    """Return log P(x in any of the intervals) of x ~ N(shift, 1), for each shift."""
    ends = ends[ends[:, 0] < ends[:, 1]].T
    low, high = ends.reshape(*ends.shape, *np.ones(shifts.ndim, dtype=int)) - shifts
    if not low.size:
        return np.full(shifts.shape, -np.inf)
    # The side that is farther from the mean than 0 is turned to the right: a from 0 on.
    a = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
    b = np.where(low > 0, high, np.where(high < 0, -low, 0.0))
    root = np.sqrt(2.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        drop = np.where(np.isinf(b), np.inf, 0.5 * (b - a) * (b + a))
        tail = erfcx(a / root) - erfcx(b / root) * np.exp(-drop)
        # Of a narrow interval that difference is all rounding, and the density times its width is
        # right.
        tail = np.where(drop < 1e-6, 2.0 * (b - a) / np.sqrt(2.0 * np.pi), tail)
        across = erf(high / root) - erf(low / root)
        logs = np.where(a > 0, np.log(tail) - 0.5 * a**2, np.log(across)) - np.log(2.0)
    return np.asarray(np.logaddexp.reduce(logs, axis=0))
