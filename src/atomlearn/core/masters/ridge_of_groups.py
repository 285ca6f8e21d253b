"""GroupRidge: min over u, b of f(A u + b) + 1/2 sum_g ||u_g||^2 / t_g, and its second derivative.

The linear systems are of the size of the sample or of the columns in use, whichever is smaller.
Newton's method for losses that are not quadratic: a ridge regression with working weights
D = f''(z) and a working response z + v / D a step, with v = -f'(z).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from atomlearn.core.interfaces import Array, Block, Deadline
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.partition import Partition
from atomlearn.core.problem.problem import Problem

Positions = NDArray[np.int64]


def raised(curvature: Array, v: Array) -> Array:
    """Return the curvature with a least one wherever the loss has a slope."""
    floor = TUNING.least_curvature * float(curvature.max(initial=0.0)) or 1.0
    return np.where(v != 0, np.maximum(curvature, floor), curvature)


@dataclass(frozen=True, slots=True)
class RidgePoint:
    """The minimiser for some scalings.

    scalings : (G,) t; weights : (m,) u; linear : (n,) A u; intercept : b; dual : (n,) v = -f';
    products : (m,) A'v; group_norms : (G,); value : f + 1/2 sum ||u_g||^2 / t_g; system : of the
    last Newton step.
    """

    scalings: Array
    weights: Array
    linear: Array
    intercept: float
    dual: Array
    products: Array
    group_norms: Array
    value: float
    system: SampleSystem | ColumnSystem


class GroupRidge:
    """The inner problem for one block and one partition of its columns."""

    def __init__(self, problem: Problem, block: Block, partition: Partition) -> None:
        self.problem = problem
        self.block = block
        self.partition = partition
        self.labels = partition.labels
        self.quadratic = problem.loss.is_quadratic
        self._fixed: Array | None = None

    def system_size(self, used: NDArray[np.generic]) -> int:
        """Return the size of the linear system where these groups are in use."""
        columns = int(self.partition.sizes[np.asarray(used) > 0].sum())
        return min(columns, self.block.shape[0])

    def solve(self, t: Array, linear: Array, intercept: float) -> RidgePoint | None:
        """Return the minimiser for the scalings t, from a guess of A u; None where it fails."""
        spread = t[self.labels]
        used = np.flatnonzero(spread > 0)
        problem = self.problem
        z, value = linear + intercept, np.inf
        point: tuple[Array, Array, float] | None = None
        for _ in range(TUNING.inner_steps):
            v = -problem.loss.gradient(problem.y, z, problem.weight)
            curvature = self._curvature(z, v)
            try:
                system = self._system(curvature, used, spread[used])
            except LinAlgError:
                return None
            u, b = system.minimum(curvature * z + v)
            Au = self.block.dot(u)
            if point is None:
                point, value = (u, Au, b), self._value(u, Au + b, used, spread)
            else:
                before = value
                point, value = self._damped(point, (u, Au, b), used, spread, value)
                if value >= before - TUNING.ridge_rounding * abs(before):
                    break
            z = point[1] + point[2]
            if self.quadratic or problem.deadline.passed:
                break
        assert point is not None
        u, linear, b = point
        v = -problem.loss.gradient(problem.y, z, problem.weight)
        q = self.block.transpose_dot(v)
        if not (np.isfinite(value) and np.isfinite(q).all()):
            return None
        return RidgePoint(t, u, linear, b, v, q, self.partition.norms(q), value, system)

    def hessian(self, at: RidgePoint, free: Positions) -> Array:
        """Return V' P V over the free groups, V_g = A_g q_g."""
        place = np.full(self.partition.n_groups, -1, dtype=np.int64)
        place[free] = np.arange(free.size)
        mine = place[self.labels]
        columns = np.flatnonzero(mine >= 0)
        parts = (at.products[columns], (np.arange(columns.size), mine[columns]))
        mixing = sparse.csc_array(parts, shape=(columns.size, free.size))
        return at.system.hessian(columns, mixing)

    def _curvature(self, z: Array, v: Array) -> Array:
        if self._fixed is not None:
            return self._fixed
        problem = self.problem
        curvature = problem.loss.curvature(problem.y, z, problem.weight)
        if self.quadratic:
            self._fixed = curvature
            return curvature
        return raised(curvature, v)

    def _system(
        self, curvature: Array, used: Positions, spread: Array
    ) -> SampleSystem | ColumnSystem:
        intercept = self.problem.fit_intercept
        if used.size > self.block.shape[0]:
            return SampleSystem(self.block, curvature, used, spread, intercept)
        return ColumnSystem(self.block, curvature, used, spread, intercept)

    def _value(self, u: Array, z: Array, used: Positions, spread: Array) -> float:
        problem = self.problem
        loss = problem.loss.value(problem.y, z, problem.weight)
        return loss + 0.5 * float((u[used] ** 2 / spread[used]).sum())

    def _damped(
        self,
        old: tuple[Array, Array, float],
        new: tuple[Array, Array, float],
        used: Positions,
        spread: Array,
        value: float,
    ) -> tuple[tuple[Array, Array, float], float]:
        """Return the first point between new and old that is lower than ``value``, else old."""
        length = 1.0
        for _ in range(30):
            kept = 1.0 - length
            u = kept * old[0] + length * new[0]
            linear = kept * old[1] + length * new[1]
            b = kept * old[2] + length * new[2]
            reached = self._value(u, linear + b, used, spread)
            if reached < value:
                return (u, linear, b), reached
            length *= 0.5
        return old, value


class ColumnSystem:
    """(T^-1 + A'DA) over the columns in use, with the intercept projected out of A.

    In the scale of T^1/2 the matrix is I + T^1/2 A'DA T^1/2, which is never singular.
    """

    __slots__ = ("_block", "_curvature", "_factor", "_means", "_root", "_total", "_used")

    def __init__(
        self, block: Block, curvature: Array, used: Positions, spread: Array, intercept: bool
    ) -> None:
        self._block, self._curvature, self._used = block, curvature, used
        self._root = np.sqrt(spread)
        self._total = float(curvature.sum()) if intercept else 0.0
        self._means = np.zeros(used.size)
        gram = block.gram(curvature, used)
        if self._total > 0:
            self._means = block.transpose_dot(curvature)[used]
            gram -= np.outer(self._means, self._means / self._total)
        gram *= self._root
        gram *= self._root[:, None]
        gram[np.diag_indices(used.size)] += 1.0
        Deadline.current().check()
        self._factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)

    def minimum(self, response: Array) -> tuple[Array, float]:
        """Return u, b for the weighted response D z + v."""
        h = self._block.transpose_dot(response)[self._used]
        total = float(response.sum())
        if self._total > 0:
            h = h - self._means * (total / self._total)
        u = self._root * cho_solve(self._factor, self._root * h, check_finite=False)
        full = np.zeros(self._block.shape[1])
        full[self._used] = u
        b = (total - float(self._means @ u)) / self._total if self._total > 0 else 0.0
        return full, b

    def hessian(self, columns: Positions, mixing: sparse.csc_array) -> Array:
        """Return V'PV, V = A_columns mixing: Q'GQ less what the columns in use explain."""
        both = np.union1d(self._used, columns)
        gram = self._block.gram(self._curvature, both)
        if self._total > 0:
            means = self._block.transpose_dot(self._curvature)[both]
            gram -= np.outer(means, means / self._total)
        rows = np.searchsorted(both, columns)
        Deadline.current().check()
        image = np.asarray((mixing.T @ gram[rows]).T)
        plain = np.asarray(mixing.T @ image[rows])
        Deadline.current().check()
        inner = self._root[:, None] * image[np.searchsorted(both, self._used)]
        plain -= inner.T @ cho_solve(self._factor, inner, check_finite=False)
        return np.asarray(0.5 * (plain + plain.T))


class SampleSystem:
    """I + B T B' in sample space, B = D^1/2 A with the intercept projected out."""

    __slots__ = ("_block", "_factor", "_root", "_spread", "_total", "_used")

    def __init__(
        self, block: Block, curvature: Array, used: Positions, spread: Array, intercept: bool
    ) -> None:
        self._block, self._used, self._spread = block, used, spread
        self._root = np.sqrt(curvature)
        self._total = float(curvature.sum()) if intercept else 0.0
        outer = block.outer(spread, used)
        outer = outer * self._root
        outer *= self._root[:, None]
        if self._total > 0:
            mean = outer @ self._root / self._total
            outer -= np.outer(mean, self._root)
            outer -= np.outer(self._root, self._root @ outer / self._total)
        outer[np.diag_indices(outer.shape[0])] += 1.0
        Deadline.current().check()
        self._factor = cho_factor(outer, lower=True, overwrite_a=True, check_finite=False)

    def _centered(self, x: Array) -> Array:
        if not self._total > 0:
            return x
        direction = self._root if x.ndim == 1 else self._root[:, None]
        return x - direction * ((self._root @ x) / self._total)

    def minimum(self, response: Array) -> tuple[Array, float]:
        """Return u, b for the weighted response D z + v."""
        root = self._root
        scaled = np.divide(response, root, out=np.zeros_like(root), where=root > 0)
        dual = cho_solve(self._factor, self._centered(scaled), check_finite=False)
        dual = root * self._centered(dual)
        u = np.zeros(self._block.shape[1])
        u[self._used] = self._spread * self._block.transpose_dot(dual)[self._used]
        b = 0.0
        if self._total > 0:
            linear = self._block.dot(u)
            b = float(response.sum() - (root * root) @ linear) / self._total
        return u, b

    def hessian(self, columns: Positions, mixing: sparse.csc_array) -> Array:
        """Return V'PV, V = A_columns mixing."""
        chosen = self._block.take(columns)
        image = np.asarray(mixing.T @ chosen.dense().T).T
        image = self._centered(self._root[:, None] * image)
        Deadline.current().check()
        result = image.T @ cho_solve(self._factor, image, check_finite=False)
        return np.asarray(0.5 * (result + result.T))
