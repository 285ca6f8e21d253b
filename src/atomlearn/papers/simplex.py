"""Projected quasi-Newton on the simplex of atom weights: step (S4) of [L] Algorithm 1.

min over alpha in the simplex of  phi(alpha) = f(U alpha) + cost'alpha  [Schmidt, van den Berg,
Friedlander, Murphy 2009]. Each iteration minimises a quadratic model over the simplex, then
searches along the way there. Where they use L-BFGS and spectral projected gradient, the matrix is
small here, so it is kept whole (BFGS, or the Hessian where it is known) and the model is minimised
exactly by an active set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from atomlearn._kernels import active_set_qp
from atomlearn.core.interfaces import Array

#: phi and its gradient at alpha.
SimplexFunction = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, slots=True)
class SimplexPoint:
    """alpha in the simplex with phi, and gap = g'alpha - min_h g_h >= phi - phi*; steps made."""

    alpha: Array
    value: float
    gap: float
    steps: int


def project_simplex(v: Array) -> Array:
    """argmin_x ||x - v||^2 subject to x >= 0, sum x = 1: sort, then one threshold. O(t log t)."""
    if not v.size:
        raise ValueError("project_simplex needs at least one entry, got none; give it an atom")
    # A shift of all entries changes nothing, and spares the sums their large part.
    shifted = v - v.max()
    ordered = -np.sort(-shifted)
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, v.size + 1)
    count = int(np.count_nonzero(ordered > excess))
    result = np.maximum(shifted - excess[count - 1], 0.0)
    return np.asarray(result / result.sum())


@dataclass(frozen=True, slots=True)
class SimplexQuasiNewton:
    """min phi(alpha) over alpha >= 0, sum alpha = 1 by projected quasi-Newton with BFGS.

    Parameters
    ----------
    max_iter : int
        Bound on quasi-Newton iterations of one call.
    max_pivots : int
        Bound on pivots of the active set on one quadratic model.

    References
    ----------
    [L] Algorithm 1, step (S4).
    M. Schmidt, E. van den Berg, M. Friedlander, K. Murphy 2009, AISTATS (projected quasi-Newton).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.masters import SimplexQuasiNewton
    >>> target = np.array([0.2, 0.8])
    >>> def distance(alpha):
    ...     return 0.5 * float((alpha - target) @ (alpha - target)), alpha - target
    >>> SimplexQuasiNewton().solve(distance, np.array([1.0, 0.0]), 1e-12).alpha.round(6)
    array([0.2, 0.8])
    """

    max_iter: int = 500
    max_pivots: int = 1000

    def solve(
        self,
        function: SimplexFunction,
        alpha: Array,
        gap_target: float,
        curvature: Callable[[Array], Array] | None = None,
        lowest: float = -math.inf,
    ) -> SimplexPoint:
        """Minimise from the warm start ``alpha`` until the gap on the simplex is ``gap_target``.

        ``curvature(alpha)`` gives the Hessian of phi there, (t, t), and takes the place of the
        BFGS matrix; None: BFGS from a multiple of I. ``lowest`` is a known lower bound of phi,
        which caps the gap. The value never rises: the result is at least as good as the warm
        start.
        """
        alpha = project_simplex(np.asarray(alpha, dtype=np.float64))
        value, gradient = function(alpha)
        model: Array | None = None
        for steps in range(self.max_iter):
            gap = min(simplex_gap(alpha, gradient), value - lowest)
            if gap <= gap_target or alpha.size == 1:
                return SimplexPoint(alpha, value, max(gap, 0.0), steps)
            if curvature is not None:
                model = curvature(alpha)
            elif model is None:
                model = _first_model(function, alpha, gradient)
            direction = model_minimum(alpha, gradient, model, self.max_pivots) - alpha
            found = _search(function, alpha, value, gradient, direction)
            if found is None:
                # The model is of no use any more: a projected gradient step before giving up.
                model = _first_model(function, alpha, gradient)
                direction = model_minimum(alpha, gradient, model, self.max_pivots) - alpha
                found = _search(function, alpha, value, gradient, direction)
            if found is None:
                return SimplexPoint(alpha, value, max(gap, 0.0), steps)
            following, value, new_gradient = found
            model = _bfgs(model, following - alpha, new_gradient - gradient)
            alpha, gradient = following, new_gradient
        gap = min(simplex_gap(alpha, gradient), value - lowest)
        return SimplexPoint(alpha, value, max(gap, 0.0), self.max_iter)


def model_minimum(alpha: Array, gradient: Array, model: Array, max_pivots: int) -> Array:
    """argmin over the simplex of g'(x - alpha) + (x - alpha)'H(x - alpha)/2: the active-set QP.

    Warm started at alpha; the model's value falls with each pivot. Atoms may be linearly dependent,
    and any of the minimisers will do.
    """
    point, _ = active_set_qp(
        model, gradient, alpha, radius=1.0, equality=True, from_gradient=True, max_pivots=max_pivots
    )
    return np.asarray(point / point.sum())


def simplex_gap(alpha: Array, gradient: Array) -> float:
    """Return g'alpha - min_h g_h, an upper bound of phi(alpha) - phi* for convex phi."""
    return float(alpha @ (gradient - gradient.min()))


def _first_model(function: SimplexFunction, alpha: Array, gradient: Array) -> Array:
    """Return a multiple of I: the curvature of phi toward the best vertex."""
    way = -alpha.copy()
    way[int(gradient.argmin())] += 1.0
    square = float(way @ way)
    _, changed = function(alpha + 1e-3 * way)
    bend = float((changed - gradient) @ way) / (1e-3 * square) if square > 0 else 1.0
    return np.eye(alpha.size) * (bend if bend > 0 else 1.0)


def _bfgs(hessian: Array, move: Array, change: Array) -> Array:
    """Return the BFGS matrix after this move, damped so that it stays positive definite."""
    image = hessian @ move
    bend = float(move @ image)
    if bend <= 0.0:
        return hessian
    curvature = float(move @ change)
    if curvature < 0.2 * bend:
        share = 0.8 * bend / (bend - curvature)
        change = share * change + (1.0 - share) * image
        curvature = float(move @ change)
    if curvature <= 1e-300:
        return hessian
    return hessian - np.outer(image, image) / bend + np.outer(change, change) / curvature


def _search(
    function: SimplexFunction, alpha: Array, value: float, gradient: Array, direction: Array
) -> tuple[Array, float, Array] | None:
    """Armijo search along a feasible direction; None where rounding leaves no descent."""
    slope = float(gradient @ direction)
    if slope > -1e-15 * abs(value):
        return _last_step(function, alpha, value, gradient, direction)
    length = 1.0
    for _ in range(40):
        trial = np.maximum(alpha + length * direction, 0.0)
        trial /= trial.sum()
        reached, new_gradient = function(trial)
        if reached <= value + 1e-4 * length * slope:
            return trial, reached, new_gradient
        # Where values agree to rounding, slopes still tell. [Hager, Zhang 2005, approximate Wolfe]
        level = reached <= value + 1e-14 * abs(value)
        if level and float(new_gradient @ direction) <= (2e-4 - 1.0) * slope:
            return trial, min(reached, value), new_gradient
        # The minimiser of the parabola through both values, kept within a tenth to a half.
        bend = reached - value - length * slope
        length *= min(0.5, max(0.1, -0.5 * length * slope / bend)) if bend > 0 else 0.5
    return None


def _last_step(
    function: SimplexFunction, alpha: Array, value: float, gradient: Array, direction: Array
) -> tuple[Array, float, Array] | None:
    """The full step, where values are equal to rounding and the gap still halves; else None."""
    trial = np.maximum(alpha + direction, 0.0)
    trial /= trial.sum()
    reached, new_gradient = function(trial)
    halved = simplex_gap(trial, new_gradient) <= 0.5 * simplex_gap(alpha, gradient)
    if halved and reached <= value + 1e-14 * abs(value):
        return trial, min(reached, value), new_gradient
    return None
