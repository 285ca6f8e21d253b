"""The value of a norm given by its lift: min { inner(u) : L u = w } with bounds from both sides."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from atomlearn.core.interfaces import TINY, Array, Lift, Norm
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.tuning import TUNING

#: Relative gap of a value.
GAP = 1e-9


def lifted_value(lift: Lift, w: Array) -> float:
    """Return min { inner(u) : L u = w }; an upper bound, certified to a relative gap of 1e-9.

    By the alternating direction method: the inner norm's prox, and projections onto L u = w. Each
    iteration gives a u that fulfils the equation (an upper bound) and a dual s, scaled into the
    polar's ball (a lower bound <w, s>).

    Raises
    ------
    ValueError
        Where w is no L u: the gauge is infinite.
    RuntimeError
        Where the bounds do not meet after 100,000 iterations; with both of them.
    """
    if not w.any():
        return 0.0
    norm, matrix = lift.norm, lift.expansion.matrix
    if not norm.proximal:
        raise TypeError(f"the value of {norm!r} needs a proximal map")
    scale = float(np.abs(w).max())
    return scale * _alternating(norm, matrix, w / scale)


def _alternating(norm: Norm, matrix: sparse.csc_array, w: Array) -> float:
    try:
        solve = splu(sparse.csc_array(matrix @ matrix.T))
        u = matrix.T @ solve.solve(w)
        reached = np.allclose(matrix @ u, w)
    except RuntimeError:  # the product is singular
        reached = False
    if not reached:
        raise ValueError("the gauge is infinite, or nearly so: w is not a sum of parts on the sets")
    dual, step, balance = np.zeros(u.size), 1.0, 20
    low, high = 0.0, norm.value(u)
    for iteration in range(1, TUNING.most_steps + 1):
        x = norm.prox_point(u - dual, step, "penalized").point
        shifted = x + dual
        before, u = u, shifted + matrix.T @ solve.solve(w - matrix @ shifted)
        dual = shifted - u
        if iteration % 10 == 0:
            high = min(high, norm.value(u))
            s = solve.solve(-(matrix @ dual)) / step
            polar = norm.polar(ArrayScores(matrix.T @ s))
            low = max(low, float(w @ s) / polar if polar > 0 else 0.0)
            if high - low <= GAP * high:
                return high
        if iteration >= balance:  # ever more rarely, so that it settles
            balance = int(1.5 * balance)
            factor = _balancing(x, u, before, dual)
            step, dual = step * factor, dual * factor
    raise RuntimeError(
        f"the value lies between {low} and {high} (for max |w| = 1), and more iterations are "
        "needed to tell it closer; use solve() with this norm, which needs no value"
    )


def _balancing(x: Array, u: Array, before: Array, dual: Array) -> float:
    """Return the factor of the step that balances the relative residuals, at most 5 either way.

    The residuals are those of [Boyd et al. 2011, 3.3], each relative to what it is a residual of
    [Wohlberg 2017]: in absolute terms they can differ for ever where the dual is small, and the
    step then runs away. A large step makes x small: the primal residual grows with it.
    """
    primal = float(np.linalg.norm(x - u)) / max(float(np.linalg.norm(u)), TINY)
    change = float(np.linalg.norm(u - before)) / max(float(np.linalg.norm(dual)), TINY)
    if primal <= TINY or change <= TINY:
        return 1.0
    factor = float(np.clip(np.sqrt(change / primal), 0.2, 5.0))
    return factor if abs(np.log(factor)) > np.log(1.5) else 1.0
