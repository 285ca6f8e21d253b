"""The value of a lifted norm, min { inner(u) : L u = w }, with lower and upper bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from atomlearn._support import TINY
from atomlearn.core import (
    TUNING,
    Array,
    ArrayScores,
    Lift,
    Norm,
    Problem,
    Regularizer,
    Settings,
    SparseDesign,
    Squared,
    WarmStart,
    is_restrictable,
)

#: Target for the relative gap between the bounds, and the gap accepted if rounding prevents it.
GAP = 1e-9
ENOUGH = 1e-8
#: Relative duality gap of each subproblem, and maximum number of augmented Lagrangian steps.
NEAR = 1e-10
MOST = 25


def lifted_value(lift: Lift, w: Array) -> float:
    """Return min { inner(u) : L u = w } to a relative accuracy of 1e-8, certified by a dual bound.

    L (n_features, n_lifted) is the matrix of ``lift`` and inner its norm; ``w`` is (n_features,).
    For norms of vectors the method is ``_multiplier_bounds``. For norms of matrices, whose
    subproblems take many steps, it is ``_alternating`` (ADMM). Each yields lower and upper bounds
    until they agree.

    Raises
    ------
    ValueError
        If w is not in the range of L, so that the gauge is infinite.
    RuntimeError
        If the gap between the bounds remains too large; the message contains both bounds.

    References
    ----------
    R. T. Rockafellar 1976, doi:10.1287/moor.1.2.97.
    """
    if not w.any():
        return 0.0
    norm = lift.norm
    matrix = lift.expansion.matrix
    if not norm.proximal:
        raise TypeError(f"the value of {norm!r} needs a proximal map")
    # Solve L L' x = w: then u = L'x is a point with L u = w, unless w is outside the range of L.
    scale = float(np.abs(w).max())
    w = w / scale
    try:
        factors = splu(sparse.csc_array(matrix @ matrix.T))
        u: Array = matrix.T @ factors.solve(w)
        in_range = float(np.abs(matrix @ u - w).max()) <= TUNING.rounding_share
    except RuntimeError:  # the product is singular
        in_range = False
    if not in_range:
        raise ValueError("the gauge is infinite, or nearly so: w is not a sum of parts on the sets")
    # Take the best of all bounds, until they are close enough.
    bounds = (_multiplier_bounds if is_restrictable(norm, matrix.shape[1]) else _alternating)(
        norm, matrix, w, factors.solve
    )
    low = 0.0
    high = math.inf
    for lower, upper in bounds:
        low = max(low, lower)
        high = min(high, upper)
        if high - low <= GAP * high:
            break
    if high - low <= ENOUGH * high:
        return scale * high
    raise RuntimeError(
        f"the value is between {low} and {high} (for max |w| = 1), and a better accuracy needs "
        "more iterations; use solve() with this norm, which needs no value"
    )


def _multiplier_bounds(
    norm: Norm, matrix: sparse.csc_array, w: Array, solve: Callable[[Array], Array]
) -> Iterator[tuple[float, float]]:
    """Yield (lower, upper) bounds on min { norm(u) : L u = w } by the augmented Lagrangian method.

    L is ``matrix``. With a dual variable z, each step of this method of multipliers solves

        min over u of  1/2 ||w + eps z - L u||^2 + eps norm(u)

    and adds (w - L u) / eps to z. Projecting u onto the set L u = w gives an upper bound, norm(u).
    Scaling z so that polar(L'z) = 1 gives a lower bound, <w, z>. ``solve`` applies the inverse of L
    L', for the projection.
    """
    # Each step is a least squares problem with the penalty eps * norm(u) and the data L. A smaller
    # eps in the next step makes the residual w - L u fall faster.
    design = SparseDesign(matrix)
    ones = np.ones(w.size)
    dual = np.zeros(w.size)
    eps = 0.1 * norm.polar(ArrayScores(matrix.T @ w))
    settings = Settings(tol=NEAR, max_iter=50)
    warm: WarmStart | None = None
    for _ in range(MOST):
        penalty = Regularizer(norm, "penalized", eps)
        fit = settings.run(Problem(Squared(), design, w + eps * dual, ones, penalty), warm)
        warm = fit.warm_start()
        u = fit.coef.reshape(-1)
        residual = w - matrix @ u
        dual = dual + residual / eps
        polar = norm.polar(ArrayScores(matrix.T @ dual))
        upper = norm.value(u + matrix.T @ solve(residual))
        yield float(w @ dual) / polar if polar > 0 else 0.0, upper
        eps *= 0.3


def _alternating(
    norm: Norm, matrix: sparse.csc_array, w: Array, solve: Callable[[Array], Array]
) -> Iterator[tuple[float, float]]:
    """Yield (lower, upper) bounds on min { norm(u) : L u = w } by ADMM.

    L is ``matrix``. Each iteration alternates the proximal map of ``norm``, with the result ``x``,
    and the projection onto {L u = w}, with the result ``u``. For this, ``solve`` applies the
    inverse of L L'. ``dual`` is the scaled dual variable. Bounds are yielded every 10 iterations.
    """
    u: Array = matrix.T @ solve(w)
    dual = np.zeros(u.size)
    step = 1.0
    next_balancing = 20
    for iteration in range(1, TUNING.most_steps + 1):
        x = norm.prox_point(u - dual, step, "penalized").point
        shifted = x + dual
        previous = u
        u = shifted + matrix.T @ solve(w - matrix @ shifted)
        dual = shifted - u
        if iteration % 10 == 0:
            # With the dual point s scaled so that polar(L's) = 1, <w, s> is a lower bound.
            dual_point = solve(-(matrix @ dual)) / step
            polar = norm.polar(ArrayScores(matrix.T @ dual_point))
            yield float(w @ dual_point) / polar if polar > 0 else 0.0, norm.value(u)
        # The updates become ever rarer: ADMM converges only if the step size settles.
        if iteration >= next_balancing:
            next_balancing = int(1.5 * next_balancing)
            factor = _balancing(x, u, previous, dual)
            step = step * factor
            dual = dual * factor


def _balancing(x: Array, u: Array, before: Array, dual: Array) -> float:
    """Return the multiplier (1/5 to 5) for the ADMM step that balances the relative residuals.

    The relative residuals are ||x - u|| / ||u|| (primal) and ||u - before|| / ||dual|| (dual). The
    multiplier is sqrt(dual residual / primal residual), or 1 if that is within a factor of 1.5. A
    larger step increases the primal residual. The residuals are those of [Boyd et al. 2011, 3.3],
    normalized as in [Wohlberg 2017]: absolute residuals can remain unequal if the dual variable is
    small, and then the step diverges.

    ``x`` and ``u`` are the two copies of the variable (after the proximal operator and after the
    projection), ``before`` is u of the previous iteration, ``dual`` the scaled dual variable.
    """
    primal = float(np.linalg.norm(x - u)) / max(float(np.linalg.norm(u)), TINY)
    change = float(np.linalg.norm(u - before)) / max(float(np.linalg.norm(dual)), TINY)
    if primal <= TINY or change <= TINY:
        return 1.0
    factor = float(np.clip(np.sqrt(change / primal), 0.2, 5.0))
    return factor if abs(np.log(factor)) > np.log(1.5) else 1.0
