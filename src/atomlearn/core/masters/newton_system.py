"""The linear system of a semismooth Newton step, in sample space or in coordinate space.

With D = diag(f''(z)), J the Jacobian of the proximal map, Q the free columns (1 for an intercept)
and K = sigma A J A' + sigma_q Q Q', the Newton equation of the proximal point step's dual is (I + K
D) dz = -r,  r = z - A w - Q c. Its solution has the form  dz = -r + A h + Q dc  with h, dc the
changes of weights and of c, so the smaller of two symmetric positive definite systems gives it: one
of the size of the support (coordinate space) or one of the number of samples with curvature (sample
space). The low-rank part of J enters through the Woodbury identity. [Li, Sun, Toh 2018, section
3.3]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from atomlearn._kernels import sum_of_pieces
from atomlearn.core.data.cached_block import distinct_columns
from atomlearn.core.data.compressed import weighted_squares
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Deadline, ProxJacobian
from atomlearn.core.masters.tuning import TUNING


@dataclass(frozen=True, slots=True)
class NewtonSystem:
    """The linear system of one semismooth Newton step.

    Attributes
    ----------
    block : Block
        A.
    curvature : (n,) float64
        The diagonal of D >= 0.
    jacobian : ProxJacobian
        J, of the proximal map.
    step : float
        sigma, its step size.
    free : ndarray
        Q (n, r), a basis of unpenalized columns (r may be 0).
    step_free : float
        sigma_q, the step size of their coefficients.
    """

    block: Block
    curvature: Array
    jacobian: ProxJacobian
    step: float
    free: Array
    step_free: float

    def direction(self, residual: Array) -> Array:
        """Return dz, (n,), from the smaller system; raise LinAlgError if too large or singular."""
        support = self.jacobian.support
        curved = np.flatnonzero(self.curvature > 0)
        unknowns = support.size + self.free.shape[1]
        if min(unknowns, curved.size) ** 2 > TUNING.gram_entries:
            raise LinAlgError("the system of a Newton step is too large to be factored")
        if unknowns <= curved.size:
            change, free_change = self._coordinate_space(residual, support)
        else:
            change, free_change = self._sample_space(residual, support, curved)
        return self.block.predict(change) - residual + self.free @ free_change

    def _coordinate_space(self, residual: Array, support: NDArray[np.int64]) -> tuple[Array, Array]:
        """Solve by Cholesky over the support and free columns; return changes of w and c.

        The matrix is I + s G s, with G the weighted Gram matrix and s the roots of the step sizes
        times diag(J). The Woodbury identity adds the low-rank part of J.
        """
        weighted = self.curvature * residual
        used = support.size
        curved = self.curvature[:, None] * self.free
        augmented = np.empty((used + self.free.shape[1],) * 2)
        augmented[:used, :used] = self.block.gram(self.curvature, support)
        for place, column in enumerate(curved.T, start=used):
            augmented[place, :used] = self.block.scores(column).full()[support]
        augmented[:used, used:] = augmented[used:, :used].T
        augmented[used:, used:] = self.free.T @ curved
        scale = np.full(augmented.shape[0], np.sqrt(self.step_free))
        scale[:used] = np.sqrt(self.step * self.jacobian.diagonal[support])
        matrix = scale[:, None] * augmented * scale
        matrix[np.diag_indices(scale.size)] += 1.0
        Deadline.current().check()
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        products = self.block.scores(weighted).full()[support]
        target = np.append(products, self.free.T @ weighted)
        low_rank = np.zeros(scale.size)
        factors = self.jacobian.dense_factors()
        if factors.shape[1]:
            directions = np.zeros((scale.size, factors.shape[1]))
            directions[:used] = factors[support]
            images = augmented @ directions
            solved = cho_solve(factor, scale[:, None] * images, check_finite=False)
            inner = directions.T @ images - (scale[:, None] * images).T @ solved
            right = directions.T @ target - solved.T @ (scale * target)
            weights = self._woodbury(inner, right)
            low_rank = directions @ weights
            target = target - images @ weights
        change = low_rank + scale * cho_solve(factor, scale * target, check_finite=False)
        full = np.zeros(self.block.shape[1])
        full[support] = change[:used]
        return full, change[used:]

    def _sample_space(
        self, residual: Array, support: NDArray[np.int64], curved: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Solve by Cholesky over the samples with D > 0; return the changes of w and c.

        The matrix is I + D^1/2 (sigma A diag(J) A' + sigma_q Q Q') D^1/2. The Woodbury identity
        adds the low-rank part of J.
        """
        root = np.sqrt(self.curvature[curved])
        outer = _of_samples(self.block, self.jacobian.diagonal, curved)
        matrix = self.step * outer + self.step_free * (self.free[curved] @ self.free[curved].T)
        matrix *= root
        matrix *= root[:, None]
        matrix[np.diag_indices(curved.size)] += 1.0
        Deadline.current().check()
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        target = root * residual[curved]
        factors = self.jacobian.dense_factors()
        if factors.shape[1]:
            used = np.flatnonzero(factors.any(axis=1))
            images = self.block.gather(used).dense()[curved] @ factors[used]
            images *= root[:, None]
            solved = cho_solve(factor, images, check_finite=False)
            weights = self._woodbury(images.T @ solved, solved.T @ target)
            target = target - images @ weights
        dual = np.zeros(residual.size)
        dual[curved] = root * cho_solve(factor, target, check_finite=False)
        change = self.step * self.jacobian.apply(self.block.scores(dual).full())
        return change, self.step_free * (self.free.T @ dual)

    def _woodbury(self, inner: Array, right: Array) -> Array:
        """Return ((sigma C)^-1 + V'D M^-1 V)^-1 right, in the form that allows C = 0."""
        scaled = self.step * self.jacobian.coefficients
        matrix = scaled[:, None] * inner
        matrix[np.diag_indices(right.size)] += 1.0
        return _solve(matrix, scaled * right)


def _of_samples(block: Block, diagonal: Array, rows: NDArray[np.int64]) -> Array:
    """Return A diag(diagonal) A' over these rows of A, diagonal >= 0."""
    base, places = distinct_columns(block)
    sums: Array = np.bincount(places, diagonal, base.shape[1]).astype(np.float64, copy=False)
    used = np.flatnonzero(sums)
    if base.traits.is_sparse:
        return weighted_squares(base.stored()[:, used][rows].T, sums[used])
    array = base.dense()[rows]
    roots = np.sqrt(sums)
    deadline = Deadline.current()
    n_samples = array.shape[0]

    def product(part: slice) -> Array:
        total = np.zeros((n_samples, n_samples))
        for piece in LIMITS.pieces(part.stop - part.start, n_samples):
            deadline.check()
            some = used[part][piece]
            scaled = array[:, some] * roots[some]
            total += scaled @ scaled.T
        return total

    return sum_of_pieces(product, used.size, 0.5 * used.size * n_samples**2)


def _solve(matrix: Array, right: Array) -> Array:
    """Return matrix^-1 right for a small matrix, or a least-squares solution if singular."""
    try:
        solution = np.linalg.solve(matrix, right)
    except LinAlgError:
        solution = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return np.asarray(solution)


def resolvent(jacobian: ProxJacobian, damping: Array) -> tuple[ProxJacobian, ProxJacobian]:
    """Return (I - K)^-1 and (I - K)^-1 K for K = S J S with S = (1 + damping)^-1/2.

    By Woodbury with B = (I - diagonal of K)^-1 and V C V' the low-rank part of K:
    (I - K)^-1 = B + B V (I - C V'B V)^-1 C V' B. Rows where J vanishes keep an identity row.
    """
    # 1 - d / (1 + damping), without the digits that 1 - d loses.
    spread = (1.0 + damping) / ((1.0 - jacobian.diagonal) + damping)
    gains = jacobian.diagonal / ((1.0 - jacobian.diagonal) + damping)
    factors = jacobian.dense_factors()
    if not factors.shape[1]:
        return ProxJacobian(spread), ProxJacobian(gains)
    used = np.flatnonzero(factors.any(axis=1))
    factors = factors[used] / np.sqrt(1.0 + damping[used])[:, None]
    images = spread[used, None] * factors
    matrix = -jacobian.coefficients[:, None] * (factors.T @ images)
    matrix[np.diag_indices(jacobian.coefficients.size)] += 1.0
    middle = _solve(matrix, np.diag(jacobian.coefficients))
    values, vectors = np.linalg.eigh(0.5 * (middle + middle.T))
    widened = np.zeros((spread.size, values.size))
    widened[used] = images @ vectors
    return ProxJacobian(spread, widened, values), ProxJacobian(gains, widened, values)
