"""Interior-point steps on the dual of a group problem: what many groups in use cost little in.

With B'B = L L', h = B'y, and L of as many columns as B has rank (or L = B'), the dual of

    min over u  1/2 ||y - B w||^2 + sum_g limit_g ||u_g||,     w = sum of the u_g,

is a quadratic program over one cone a group, in the unknown z = L'w,

    min over z  1/2 ||z||^2  subject to  1/2 ||q_g||^2 + s_g = 1/2 limit_g^2, s >= 0, q = h - L z,

whose multipliers are the scalings t_g >= 0 of ``ScalingNewton``: u_g = t_g q_g. A step solves one
linear system of the size of the *features* or of the sample, however many groups share them; so
models in which nearly every group is in use, where the non-negative programs of ``ScalingNewton``
are large and degenerate, take ten to twenty such steps. Predictor and corrector as in Mehrotra
(1992), from the least squares solution: q = 0 is inside every cone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, lapack, solve_triangular

from atomlearn.core.interfaces import Array, Deadline
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.result import TINY

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LeastSquaresModel:
    """1/2 ||y - B w||^2 as the interior-point steps need it.

    factor : (p, r) L with L L' = B'B; linear : (p,) h = B'y; squared_target : ||y||^2;
    free_z : (r,) z with L z = h, so that q = 0; basic : (p,) a solution w of about B'B w = h.
    """

    factor: Array
    linear: Array
    squared_target: float
    free_z: Array
    basic: Array

    @classmethod
    def of_gram(cls, gram: Array, linear: Array, squared_target: float) -> LeastSquaresModel:
        """From G = B'B: L by a Cholesky factorization with pivots, p^3 / 3."""
        factor, rows = _pivoted_cholesky(gram)
        corner = factor[rows]
        free_z = solve_triangular(corner, linear[rows], lower=True)
        basic = np.zeros(linear.size)
        basic[rows] = solve_triangular(corner.T, free_z, lower=False)
        return cls(factor, linear, squared_target, free_z, basic)

    @classmethod
    def of_columns(cls, columns: Array, target: Array) -> LeastSquaresModel:
        """From B and y: L is B' itself where B has more columns than rows."""
        n, p = columns.shape
        linear = columns.T @ target
        if p <= n:
            return cls.of_gram(columns.T @ columns, linear, float(target @ target))
        outer = columns @ columns.T
        outer[np.diag_indices(n)] += 1e-8 * float(np.trace(outer)) / n + TINY
        basic = columns.T @ cho_solve(cho_factor(outer, lower=True, overwrite_a=True), target)
        return cls(columns.T, linear, float(target @ target), target, basic)


@dataclass(frozen=True, slots=True)
class FeatureGroups:
    """Group g holds the features members[starts[g]:starts[g + 1]]; groups may overlap."""

    starts: Positions
    members: Positions
    limit: Array


class DualInterior:
    """The interior-point method on one model, from its start: ``until`` goes on to a smaller gap.

    Parameters
    ----------
    model : LeastSquaresModel
    groups : FeatureGroups

    Attributes
    ----------
    scalings : (n_groups,) float64 > 0
        The multipliers t.
    gap : float
        Primal objective at u_g = t_g q_g less dual objective at q drawn into the cones.
    steps : int
        Linear systems factored.
    """

    def __init__(self, model: LeastSquaresModel, groups: FeatureGroups) -> None:
        self.model, self.groups = model, groups
        self._membership = self._by_group(np.ones(groups.members.size))
        self._half_squares = 0.5 * groups.limit**2
        self._z = model.free_z.copy()
        self._s = self._half_squares.copy()
        t = np.sqrt(self._membership @ model.basic**2) / groups.limit
        self.scalings = np.maximum(t, max(1e-2 * float(t.mean()), TINY))
        self.steps = 0
        self._measure()

    @property
    def rest(self) -> Array:
        """s_g relative to limit_g^2 / 2: 0 where group g is at its limit, 1 where q_g is zero."""
        return self._s / self._half_squares

    def until(self, gap_target: float, max_steps: int, deadline: Deadline | None = None) -> bool:
        """Step until the gap is at most this; False where rounding or a bound ends it before."""
        least, idle = self.gap, 0
        while not self.gap <= gap_target:
            if deadline is not None and deadline.passed:
                return False
            if self.steps >= max_steps or idle == TUNING.interior_patience or not self._step():
                return False
            self._measure()
            idle = 0 if self.gap < least else idle + 1
            least = min(least, self.gap)
        return True

    def _by_group(self, entries: Array) -> sparse.csr_array:
        """Return the (n_groups, n_features) matrix of one entry for each member."""
        groups = self.groups
        shape = groups.limit.size, self.model.linear.size
        return sparse.csr_array((entries, groups.members, groups.starts), shape=shape)

    def _measure(self) -> None:
        """q, the residuals of the optimality conditions, and the gap at the present point."""
        model = self.model
        limit = self.groups.limit
        self._q = model.linear - model.factor @ self._z
        self._spread = self._membership.T @ self.scalings
        squares = self._membership @ self._q**2
        weights = self._spread * self._q
        image = model.factor.T @ weights
        self._dual_residual = self._z - image
        self._primal_residual = 0.5 * squares - self._half_squares + self._s
        lengths = np.sqrt(squares)
        loss = 0.5 * (model.squared_target - 2.0 * float(model.linear @ weights))
        primal = loss + 0.5 * float(image @ image) + float(limit @ (self.scalings * lengths))
        polar = float((lengths / limit).max(initial=0.0))
        shrink = 1.0 / polar if polar > 1.0 else 1.0
        # q is linear in z, and zero at the least squares solution.
        inside = (1.0 - shrink) * model.free_z + shrink * self._z
        self.gap = primal - 0.5 * (model.squared_target - float(inside @ inside))

    def _step(self) -> bool:
        """Predictor and corrector; False where no factor exists or nothing is finite any more."""
        factor, t, s = self.model.factor, self.scalings, self._s
        ratio = t / s
        rows = self._by_group(self._q[self.groups.members])
        inner = rows.T @ (rows * ratio[:, None]) + sparse.diags_array(self._spread)
        system = factor.T @ (inner @ factor)
        system[np.diag_indices_from(system)] += 1.0
        if not np.isfinite(system).all():
            return False
        try:
            lower = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        self.steps += 1

        def direction(complementarity: Array) -> tuple[Array, Array, Array]:
            base = (complementarity + t * self._primal_residual) / s
            right = factor.T @ (rows.T @ base) - self._dual_residual
            dz = cho_solve(lower, right, check_finite=False)
            turned = rows @ (factor @ dz)
            return dz, base - ratio * turned, turned - self._primal_residual

        mean = float(t @ s) / t.size
        _, dt, ds = direction(-t * s)
        length = min(longest_inside(t, dt), longest_inside(s, ds))
        reached = float((t + length * dt) @ (s + length * ds)) / t.size
        centering = min(1.0, max(1e-6, reached / mean)) ** 3
        dz, dt, ds = direction(centering * mean - t * s - length**2 * dt * ds)
        length = min(longest_inside(t, dt), longest_inside(s, ds))
        z, t, s = self._z + length * dz, t + length * dt, s + length * ds
        if not (np.isfinite(z).all() and (t > 0).all() and (s > 0).all()):
            return False
        self._z, self.scalings, self._s = z, t, s
        return True


def longest_inside(x: Array, change: Array) -> float:
    """Return the step, at most 1, that keeps x positive with a margin."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, TUNING.to_boundary * float((-x[falling] / change[falling]).min()))


def _pivoted_cholesky(gram: Array) -> tuple[Array, Positions]:
    """Return L with L L' = G, of as many columns as G has rank, and rows where it is triangular."""
    packed, pivots, rank, _ = lapack.dpstrf(gram, lower=1)
    pivots = np.asarray(pivots, dtype=np.int64) - 1
    factor = np.empty((gram.shape[0], rank))
    factor[pivots] = np.tril(packed[:, :rank])
    return factor, pivots[:rank]
