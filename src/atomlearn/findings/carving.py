"""Post-selection intervals: data carving, and truncated normal estimates with undecided regions.

b ~ N(theta, V) are the estimates from all rows. Those of the rows that selected are a = b + d, with
d ~ N(0, V_d) independent of b. The selection is  s_k (a_k - c_k) > 0  for all k. For one
coefficient j, we condition on the part of b that is independent of b_j and on the a_k of all
others. Then only the selection of j restricts b_j, and b_j = t has the density

    phi((t - theta_j) / v) phi(d_others(t)) P(s_j (t + d_j - c_j) > 0 given d_others(t))

with the only parameter theta_j. If the estimates are independent, it uses all the information. It
never uses less than the information of the rows that did not select.

``truncated`` treats a normal variable b ~ N(theta, error^2) that is observed only if it is in a set
of intervals. Some intervals are *known* to be in the set; of others it is *unknown*. The function
F(theta) = P(b <= the estimate | b in the set) decreases in theta. Unknown intervals count as part
of the set wherever that makes the confidence interval longer, so that it is valid in either case.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as la
from scipy.special import erf, erfcx, expit, log_ndtr

from atomlearn._support import TINY
from atomlearn.core import Array

#: Inference for one coefficient: median-unbiased estimate, lower and upper end of its confidence
#: interval, and two-sided p-value of the hypothesis that the coefficient is zero.
Inference = tuple[float, float, float, float]
#: The grid on which a density is summed: half-width in standard errors, and number of steps.
REACH = 12.0
STEPS = 1201


def carved(
    b: Array, V: Array, d: Array, V_d: Array, signs: Array, c: Array, j: int, confidence: float
) -> Inference:
    """Return data-carving inference for theta_j given  s_k (b_k + d_k - c_k) > 0  for s_k not 0.

    b : (m,) estimates from all rows, with covariance V (m, m). b + d : those of the selecting rows,
    with d of covariance V_d. signs : (m,) s_k, 0 for coefficients without a constraint. c : (m,)
    the bounds. j : the index of the coefficient. confidence : the coverage of the interval. The
    result is (estimate, lower end, upper end, p-value), see ``Inference``.

    References
    ----------
    W. Fithian, D. Sun, J. Taylor. Optimal inference after model selection. arXiv:1410.2597 (2014).
    """
    error = float(np.sqrt(V[j, j]))
    shifts = np.linspace(-REACH, REACH, STEPS) * error
    others = np.flatnonzero(signs)
    others = others[others != j]
    inverse = la.pinvh(V_d[np.ix_(others, others)])
    # The a_k of the others are fixed. If b_j increases by a shift, each other b_k increases by the
    # shift times its entry in ``drop``, and d_k decreases by as much.
    drop = V[others, j] / V[j, j]
    # log phi(d_others), up to a constant.
    log_weight = shifts * (d[others] @ inverse @ drop) - 0.5 * shifts**2 * (drop @ inverse @ drop)
    # log P(s_j (t + d_j - c_j) > 0 given d_others): ``margin`` is the conditional mean of
    # t + d_j - c_j, and ``variance`` the conditional variance of d_j.
    if signs[j]:
        slopes = inverse @ V_d[others, j]
        margin = b[j] - c[j] + slopes @ d[others] + shifts * (1.0 - slopes @ drop)
        variance = float(V_d[j, j] - V_d[j, others] @ slopes)
        log_weight += log_ndtr(signs[j] * margin / np.sqrt(max(variance, TINY)))
    return _inference_from_density(b[j], error, shifts / error, log_weight, confidence)


def _inference_from_density(
    b: float, error: float, steps: Array, log_weight: Array, confidence: float
) -> Inference:
    """Return estimate, interval and p-value of a normal mean from a reweighted normal density.

    b : observed value with standard error ``error``. steps : grid of values, in standard errors
    from b. log_weight : log of the factor by which the selection changes the density, at each grid
    value. confidence : the coverage of the interval.
    """
    # The share of each grid cell that is below the estimate.
    weights = np.where(steps < 0, 1.0, np.where(steps > 0, 0.0, 0.5))

    def below(shifts: Array) -> Array:
        """Return P(b_j <= the estimate) for each mean, (len(shifts),).

        shifts : means of the density, in standard errors from b. It is reweighted by the selection.
        """
        log_density = log_weight - 0.5 * (steps - shifts[..., None]) ** 2
        density = np.exp(log_density - log_density.max(axis=-1, keepdims=True))
        return np.asarray(density @ weights / density.sum(axis=-1))

    shares = np.array([0.5, (1 + confidence) / 2, (1 - confidence) / 2])
    value, low, high = (b + error * inverted(below, shares, 2 * REACH)).tolist()
    # A mean of 0 is -b / error standard errors from b.
    tail = float(below(np.array([-b / error]))[0])
    return value, low, high, 2 * min(tail, 1 - tail)


def inverted(below: Callable[[Array], Array], shares: Array, reach: float) -> Array:
    """Return the means (n_shares,) at which a distribution function equals each share.

    below : function from means (m, n_shares) to probabilities of that shape, one column per share.
    It decreases in the mean. shares : (n_shares,) probabilities. reach : a mean whose absolute
    value exceeds this is returned as infinite.
    """
    # Bisection into eight subintervals, 13 times. The variable is arcsinh(mean), a scale that is
    # logarithmic far from 0.
    low, high = np.full((2, shares.size), np.arcsinh(reach)) * [[-1.0], [1.0]]
    outside = np.zeros(shares.size)
    for _ in range(13):
        grid = np.linspace(low, high, 9)
        n_above = np.sum(below(np.sinh(grid)) > shares, axis=0)
        # If all grid values are on one side, there is no solution between -reach and reach.
        outside += np.where(n_above == 0, -np.inf, np.where(n_above == len(grid), np.inf, 0.0))
        # The solution is between the last grid value above the share and the next one.
        row = np.clip(n_above, 1, len(grid) - 1)
        column = np.arange(shares.size)
        low = grid[row - 1, column]
        high = grid[row, column]
    return np.asarray(np.sinh(low) + outside)


#: Distance in standard errors beyond which an end of an interval is reported as infinite.
FARTHEST = 1e6


def truncated(b: float, error: float, known: Array, unknown: Array, confidence: float) -> Inference:
    """Return truncated normal inference for the mean of a variable with observed value ``b``.

    The variable is N(mean, error^2), truncated to a set. known : (m, 2) intervals that are in the
    set, as deviations from b. unknown : (k, 2) intervals for which this is undecided, treated
    conservatively. confidence : the coverage of the interval. The result is (estimate, lower end,
    upper end, p-value), see ``Inference``.

    References
    ----------
    J. Lee, D. Sun, Y. Sun, J. Taylor. Exact post-selection inference, with application to the
    lasso. Annals of Statistics 44 (2016) 907-927.
    """
    shares = np.array([0.5, (1 + confidence) / 2, (1 - confidence) / 2])
    # Known intervals below and above the estimate, then unknown ones; in standard errors.
    intervals = [np.clip(ends / error, *side) for ends in (known, unknown)
              for side in ((-np.inf, 0.0), (0.0, np.inf))]  # fmt: skip

    def odds(shifts: Array) -> Array:
        """Return the log odds of F, see the module, at the means b + error * ``shifts`` (..., 3).

        The last axis is that of ``shares``: estimate, lower end, upper end. The first ignores the
        unknown intervals. The second counts those above the estimate, which lowers the lower end;
        the third counts those below, which raises the upper end.
        """
        below, above, more_below, more_above = (_log_masses(ends, shifts) for ends in intervals)
        below[..., 2] = np.logaddexp(below[..., 2], more_below[..., 2])
        above[..., 1] = np.logaddexp(above[..., 1], more_above[..., 1])
        return np.asarray(below - above)

    quantiles = inverted(lambda shifts: expit(odds(shifts)), shares, FARTHEST)
    value, low, high = (b + error * quantiles).tolist()
    # The p-value is that of a mean of 0. It is the largest one that the unknown intervals allow.
    _, least, most = odds(np.full(3, -b / error))
    return value, low, high, float(min(2 * min(expit(most), expit(-least)), 1.0))


def _log_masses(ends: Array, shifts: Array) -> Array:
    """Return log P(x in any of the intervals) of x ~ N(shift, 1), for each shift.

    ends : (m, 2) disjoint intervals. shifts : an array of any shape, which is that of the result.
    """
    # One axis for the intervals, and then the axes of ``shifts``.
    ends = ends[ends[:, 0] < ends[:, 1]].T
    low, high = ends.reshape(*ends.shape, *np.ones(shifts.ndim, dtype=int)) - shifts
    if not low.size:
        return np.full(shifts.shape, -np.inf)
    # Intervals are reflected if necessary so that they are to the right of the mean, a >= 0.
    a = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
    b = np.where(low > 0, high, np.where(high < 0, -low, 0.0))
    root = np.sqrt(2.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # log P = log of (scaled tail at a minus that at b) - a^2 / 2, which does not underflow.
        drop = np.where(np.isinf(b), np.inf, 0.5 * (b - a) * (b + a))
        tail = erfcx(a / root) - erfcx(b / root) * np.exp(-drop)
        # For a narrow interval, the difference of probabilities is only rounding error; density
        # times width is accurate.
        tail = np.where(drop < 1e-6, 2.0 * (b - a) / np.sqrt(2.0 * np.pi), tail)
        across = erf(high / root) - erf(low / root)
        logs = np.where(a > 0, np.log(tail) - 0.5 * a**2, np.log(across)) - np.log(2.0)
    return np.asarray(np.logaddexp.reduce(logs, axis=0))
