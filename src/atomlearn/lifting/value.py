"""The value of a norm given by its lift: min { inner(u) : L u = w } with bounds from both sides."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.interfaces import Array, Lift, Norm, WarmStart
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.losses import Squared
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.solvers.run import default_solver, run
from atomlearn.core.solvers.stopping import Iterations, RelativeGap

#: Relative gap of a value: that to go on to, and that which is enough where floats tell no more.
GAP, ENOUGH = 1e-9, 1e-8
#: Relative gap of the problems on the way; steps of multipliers, at most.
NEAR, MOST = 1e-10, 25


def lifted_value(lift: Lift, w: Array) -> float:
    """Return min { inner(u) : L u = w }; an upper bound, certified to a relative gap of 1e-8.

    By the method of multipliers: each step solves min 1/2 ||w + eps z - L u||^2 + eps inner(u).
    It gives a u that is moved onto L u = w (an upper bound), and the next multiplier z, scaled
    into the polar's ball (a lower bound <w, z>).

    Raises
    ------
    ValueError
        Where w is no L u: the gauge is infinite.
    RuntimeError
        Where the bounds do not meet; with both of them.

    References
    ----------
    R. T. Rockafellar 1976, doi:10.1287/moor.1.2.97.
    """
    if not w.any():
        return 0.0
    norm, matrix = lift.norm, lift.expansion.matrix
    if not norm.proximal:
        raise TypeError(f"the value of {norm!r} needs a proximal map")
    scale = float(np.abs(w).max())
    return scale * _by_multipliers(norm, matrix, w / scale)


def _by_multipliers(norm: Norm, matrix: sparse.csc_array, w: Array) -> float:
    try:
        solve = splu(sparse.csc_array(matrix @ matrix.T))
        u: Array = matrix.T @ solve.solve(w)
        reached = float(np.abs(matrix @ u - w).max()) <= TUNING.rounding_share
    except RuntimeError:  # the product is singular
        reached = False
    if not reached:
        raise ValueError("the gauge is infinite, or nearly so: w is not a sum of parts on the sets")
    design, one, z = SparseDesign(matrix), np.ones(w.size), np.zeros(w.size)
    low, high = 0.0, norm.value(u)
    eps = 0.1 * norm.polar(ArrayScores(matrix.T @ w))
    solver, stop = default_solver(norm, NEAR), RelativeGap(NEAR) | Iterations(50)
    warm: WarmStart | None = None
    for _ in range(MOST):
        pull = Regularizer(norm, "penalized", eps)
        fit = run(Problem(Squared(), design, w + eps * z, one, pull), solver, stop, (), warm)
        warm, u = fit.warm_start(), fit.coef.reshape(-1)
        missed = w - matrix @ u
        z = z + missed / eps
        polar = norm.polar(ArrayScores(matrix.T @ z))
        low = max(low, float(w @ z) / polar if polar > 0 else 0.0)
        high = min(high, norm.value(u + matrix.T @ solve.solve(missed)))
        if high - low <= GAP * high:
            break
        eps *= 0.3
    if high - low <= ENOUGH * high:
        return high
    raise RuntimeError(
        f"the value lies between {low} and {high} (for max |w| = 1), and floats tell no more; "
        "use solve() with this norm, which needs no value"
    )
