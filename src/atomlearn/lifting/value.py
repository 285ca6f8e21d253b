"""The value of a norm given by its lift: min { inner(u) : L u = w } with bounds from both sides."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from atomlearn.core.interfaces import Array, Lift, Norm
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.problem.result import TINY
from atomlearn.lifting.decomposition import value_of_groups

#: Relative gap at which the alternating directions of a value end ...
GAP = 1e-8
#: ... and the iterations after which they give up.
MOST_ITERATIONS = 100_000


def lifted_value(lift: Lift, w: Array) -> float:
    """Return min { inner(u) : L u = w }; an upper bound, certified to a relative gap of 1e-8.

    Group norms have a method of their own (to 1e-10). Otherwise the alternating direction method:
    the inner norm's prox, and projections onto L u = w. Each iteration gives a u that fulfils the
    equation (an upper bound) and a dual s, scaled into the polar's ball (a lower bound <w, s>).

    Raises
    ------
    RuntimeError
        Where the bounds do not meet after 100,000 iterations; with both of them.
    """
    if not w.any():
        return 0.0
    norm = lift.norm
    groups = norm.as_groups(lift.expansion.shape[1])
    if groups is not None:
        return value_of_groups(w, lift.expansion, groups)
    if not norm.proximal:
        raise TypeError(f"the value of {norm!r} needs a proximal map")
    scale = float(np.abs(w).max())
    return scale * _alternating(lift, norm, lift.expansion.matrix, w / scale)


def _alternating(lift: Lift, norm: Norm, matrix: sparse.csc_array, w: Array) -> float:
    solve = splu(sparse.csc_array(matrix @ matrix.T))
    u = matrix.T @ solve.solve(w)
    dual, step, balance = np.zeros(u.size), 1.0, 20
    low, high = 0.0, lift.norm.value(u)
    for iteration in range(1, MOST_ITERATIONS + 1):
        x = norm.prox_point(u - dual, step, "penalized").point
        shifted = x + dual
        before, u = u, shifted + matrix.T @ solve.solve(w - matrix @ shifted)
        dual = shifted - u
        if iteration % 10 == 0:
            high = min(high, lift.norm.value(u))
            s = solve.solve(-(matrix @ dual)) / step
            polar = lift.norm.polar(ArrayScores(matrix.T @ s))
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
