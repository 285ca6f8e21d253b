"""Post-selection intervals: data carving, and truncated normal estimates with undecided regions.

b ~ N(theta, V) are the estimates from all rows, a = b + d those of the rows that selected, with
d ~ N(0, V_d) independent of b; the selection is  s_k (a_k - c_k) > 0  for all k. For one
coefficient j, the part that is independent of b_j is kept as it was, and so are the a_k of all
others. Then only the selection of j is left: b_j = t has the density

    phi((t - theta_j) / v) phi(d_others(t)) P(s_j (t + d_j - c_j) > 0 given d_others(t))

of one parameter. Where nothing depends on the others this is all the information; it is never less
than that of the rows that did not select.

A normal variable that is only seen on a part of the line: b ~ N(theta, error^2) is kept where b + x
is in sets of intervals that are *known* to be kept; for sets that are *open* it is not known.
F(theta) = P(b <= the estimate | kept) falls in theta. An interval takes of each open set what
makes it longer, so that it covers whatever is true there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as la
from scipy.special import erf, erfcx, expit, log_ndtr

from atomlearn.core import TINY, Array

#: Median-unbiased estimate, lower and upper end of its interval, and two-sided p-value of zero.
Found = tuple[float, float, float, float]
#: The grid on which a density is summed: half-width in standard errors, and number of steps.
REACH = 12.0
STEPS = 1201


def carved(
    b: Array, V: Array, d: Array, V_d: Array, signs: Array, c: Array, j: int, confidence: float
) -> Found:
    """Return data-carving inference for theta_j given  s_k (b_k + d_k - c_k) > 0  for s_k not 0.

    b : (m,) estimates from all rows, with covariance V (m, m); b + d : those of the selecting rows,
    with d of covariance V_d; signs : (m,) s_k, 0 for coefficients without a constraint; c : (m,)
    the bounds; j : the coefficient.

    References
    ----------
    W. Fithian, D. Sun, J. Taylor. Optimal inference after model selection. arXiv:1410.2597 (2014).
    """
    error = float(np.sqrt(V[j, j]))
    x = np.linspace(-REACH, REACH, STEPS) * error
    others = np.flatnonzero(signs)
    others = others[others != j]
    inverse = la.pinvh(V_d[np.ix_(others, others)])
    # If b_j increases by x, each other coefficient decreases by x times its entry in ``along``, so
    # that their sums are unchanged.
    along = V[others, j] / V[j, j]
    log_weight = x * (d[others] @ inverse @ along) - 0.5 * x**2 * (along @ inverse @ along)
    if signs[j]:
        slopes = inverse @ V_d[others, j]
        slack = b[j] - c[j] + slopes @ d[others] + x * (1.0 - slopes @ along)
        variance = float(V_d[j, j] - V_d[j, others] @ slopes)
        log_weight += log_ndtr(signs[j] * slack / np.sqrt(max(variance, TINY)))
    return _inference_from_density(b[j], error, x / error, log_weight, confidence)


def _inference_from_density(
    b: float, error: float, steps: Array, log_weight: Array, confidence: float
) -> Found:
    """Return estimate, interval and p-value of a normal mean from a reweighted normal density.

    b : observed value with standard error ``error``; steps : grid of values, in standard errors
    from b; log_weight : log of the factor of the density at each grid value.
    """
    weights = np.where(steps < 0, 1.0, np.where(steps > 0, 0.0, 0.5))

    def below(shifts: Array) -> Array:
        """Return P(b_j <= the estimate) for each shift of its mean, in standard errors."""
        logs = log_weight - 0.5 * (steps - shifts[..., None]) ** 2
        parts = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(parts @ weights / parts.sum(axis=-1))

    shares = np.array([0.5, (1 + confidence) / 2, (1 - confidence) / 2])
    value, low, high = (b + error * inverted(below, shares, 2 * REACH)).tolist()
    tail = float(below(np.array([-b / error]))[0])
    return value, low, high, 2 * min(tail, 1 - tail)


def inverted(below: Callable[[Array], Array], shares: Array, reach: float) -> Array:
    """Return the means at which a decreasing distribution function equals each share.

    below : function from means (m, n_shares) to probabilities of that shape, one column per share;
    shares : (n_shares,); the result is infinite if its absolute value exceeds ``reach``.
    """
    low, high = np.full((2, shares.size), np.arcsinh(reach)) * [[-1.0], [1.0]]
    outside = np.zeros(shares.size)
    for _ in range(13):
        parts = np.linspace(low, high, 9)
        n_above = np.sum(below(np.sinh(parts)) > shares, axis=0)
        outside += np.where(n_above == 0, -np.inf, np.where(n_above == len(parts), np.inf, 0.0))
        first = np.clip(n_above, 1, len(parts) - 1), np.arange(shares.size)
        low = parts[first[0] - 1, first[1]]
        high = parts[first]
    return np.asarray(np.sinh(low) + outside)


#: Distance in standard errors beyond which an end of an interval is reported as infinite.
FARTHEST = 1e6


def truncated(b: float, error: float, known: Array, unknown: Array, confidence: float) -> Found:
    """Return truncated normal inference for the mean of b ~ N(mean, error^2).

    known : (m, 2) intervals of deviations from b known to be in the truncation set; unknown : those
    for which this is undecided, treated conservatively.

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

    shares = np.array([0.5, (1 + confidence) / 2, (1 - confidence) / 2])
    quantiles = inverted(lambda shifts: expit(odds(shifts)), shares, FARTHEST)
    value, low, high = (b + error * quantiles).tolist()
    _, least, most = odds(np.full(3, -b / error))
    return value, low, high, float(min(2 * min(expit(most), expit(-least)), 1.0))


def _log_masses(ends: Array, shifts: Array) -> Array:
    """Return log P(x in any of the intervals) of x ~ N(shift, 1), for each shift."""
    ends = ends[ends[:, 0] < ends[:, 1]].T
    low, high = ends.reshape(*ends.shape, *np.ones(shifts.ndim, dtype=int)) - shifts
    if not low.size:
        return np.full(shifts.shape, -np.inf)
    # Intervals are reflected if necessary so that they are to the right of the mean, a >= 0.
    a = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
    b = np.where(low > 0, high, np.where(high < 0, -low, 0.0))
    root = np.sqrt(2.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        drop = np.where(np.isinf(b), np.inf, 0.5 * (b - a) * (b + a))
        tail = erfcx(a / root) - erfcx(b / root) * np.exp(-drop)
        # For a narrow interval, the difference of probabilities is only rounding error; density
        # times width is accurate.
        tail = np.where(drop < 1e-6, 2.0 * (b - a) / np.sqrt(2.0 * np.pi), tail)
        across = erf(high / root) - erf(low / root)
        logs = np.where(a > 0, np.log(tail) - 0.5 * a**2, np.log(across)) - np.log(2.0)
    return np.asarray(np.logaddexp.reduce(logs, axis=0))
