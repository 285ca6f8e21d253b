"""The linear system of a semismooth Newton step, in sample space or in coordinate space.

With D = diag(f''(z)), J the Jacobian of the proximal map and K = sigma A J A' + sigma_b 1 1',
the Newton equation of the proximal point step's dual is  (I + K D) dz = -r,  r = z - A w - b.
Its solution has the form  dz = -r + A h + 1 db  with h, db the changes of weights and intercept,
so the smaller of two symmetric positive definite systems gives it: one of the size of the
support (coordinate space) or one of the number of samples with curvature (sample space). The
low-rank part of J enters through the Woodbury identity. [Li, Sun, Toh 2018, section 3.3]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from atomlearn.core.interfaces import Array, Block, Deadline, ProxJacobian
from atomlearn.core.masters.tuning import TUNING


@dataclass(frozen=True, slots=True)
class NewtonSystem:
    """The constants of one Newton equation.

    block : A; curvature : (n,) D >= 0; jacobian : J; step : sigma; step_intercept : sigma_b
    (0 where there is no intercept).
    """

    block: Block
    curvature: Array
    jacobian: ProxJacobian
    step: float
    step_intercept: float

    def direction(self, residual: Array) -> Array:
        """Return dz, shape (n,)."""
        support = self.jacobian.support
        curved = np.flatnonzero(self.curvature > 0)
        smaller = min(support.size + 1, curved.size)
        if smaller > TUNING.direct_limit:
            change, intercept_change = self._iterative(residual)
        elif support.size + 1 <= curved.size:
            change, intercept_change = self._coordinate_space(residual, support)
        else:
            change, intercept_change = self._sample_space(residual, support, curved)
        return self.block.dot(change) - residual + intercept_change

    def _coordinate_space(self, residual: Array, support: NDArray[np.int64]) -> tuple[Array, float]:
        """Cholesky of I + s G s over the support and the intercept; then Woodbury for J's rest."""
        weighted = self.curvature * residual
        products = self.block.transpose_dot(weighted)[support]
        means = np.zeros(support.size)
        if self.step_intercept:
            means = self.block.transpose_dot(self.curvature)[support]
        gram = self.block.gram(self.curvature, support)
        size = support.size + 1
        augmented = np.empty((size, size))
        augmented[:-1, :-1] = gram
        augmented[-1, :-1] = augmented[:-1, -1] = means
        augmented[-1, -1] = self.curvature.sum()
        scale = np.empty(size)
        scale[:-1] = np.sqrt(self.step * self.jacobian.diagonal[support])
        scale[-1] = np.sqrt(self.step_intercept)
        matrix = scale[:, None] * augmented * scale
        matrix[np.diag_indices(size)] += 1.0
        Deadline.current().check()
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        target = np.append(products, weighted.sum())
        low_rank = np.zeros(size)
        factors = self.jacobian.dense_factors()
        if factors.shape[1]:
            directions = np.vstack([factors[support], np.zeros((1, factors.shape[1]))])
            images = augmented @ directions
            solved = cho_solve(factor, scale[:, None] * images, check_finite=False)
            inner = directions.T @ images - (scale[:, None] * images).T @ solved
            right = directions.T @ target - solved.T @ (scale * target)
            weights = self._woodbury(inner, right)
            low_rank = directions @ weights
            target = target - images @ weights
        change = low_rank + scale * cho_solve(factor, scale * target, check_finite=False)
        full = np.zeros(self.block.shape[1])
        full[support] = change[:-1]
        return full, float(change[-1])

    def _sample_space(
        self, residual: Array, support: NDArray[np.int64], curved: NDArray[np.int64]
    ) -> tuple[Array, float]:
        """Cholesky of I + D^1/2 (sigma A diag(J) A' + sigma_b) D^1/2 over the curved samples."""
        root = np.sqrt(self.curvature[curved])
        outer = self.block.outer(self.jacobian.diagonal[support], support)
        if curved.size < root.size or curved.size < outer.shape[0]:
            outer = outer[np.ix_(curved, curved)]
        matrix = self.step * outer + self.step_intercept
        matrix *= root
        matrix *= root[:, None]
        matrix[np.diag_indices(curved.size)] += 1.0
        Deadline.current().check()
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        target = root * residual[curved]
        factors = self.jacobian.dense_factors()
        if factors.shape[1]:
            used = np.flatnonzero(factors.any(axis=1))
            images = self.block.take(used).dense()[curved] @ factors[used]
            images *= root[:, None]
            solved = cho_solve(factor, images, check_finite=False)
            weights = self._woodbury(images.T @ solved, solved.T @ target)
            target = target - images @ weights
        dual = np.zeros(residual.size)
        dual[curved] = root * cho_solve(factor, target, check_finite=False)
        change = self.step * self.jacobian.apply(self.block.transpose_dot(dual))
        return change, self.step_intercept * float(dual.sum())

    def _woodbury(self, inner: Array, right: Array) -> Array:
        """Return ((sigma C)^-1 + V'D M^-1 V)^-1 right, in the form that allows C = 0."""
        scaled = self.step * self.jacobian.coefficients
        matrix = scaled[:, None] * inner
        matrix[np.diag_indices(right.size)] += 1.0
        return _solve(matrix, scaled * right)

    def _iterative(self, residual: Array) -> tuple[Array, float]:
        """Conjugate gradients on I + D^1/2 K D^1/2 for supports and samples beyond the limit."""
        root = np.sqrt(self.curvature)
        block, jacobian = self.block, self.jacobian

        def multiply(v: Array) -> Array:
            dual = root * v
            image = self.step * block.dot(jacobian.apply(block.transpose_dot(dual)))
            image += self.step_intercept * dual.sum()
            return v + root * image

        n_samples = residual.size
        diagonal = 1.0 + self.step_intercept * self.curvature
        operator = LinearOperator((n_samples, n_samples), matvec=multiply, dtype=np.float64)
        preconditioner = LinearOperator(
            (n_samples, n_samples), matvec=lambda v: v / diagonal, dtype=np.float64
        )
        solution, _ = cg(operator, root * residual, rtol=1e-4, maxiter=500, M=preconditioner)
        dual = root * solution
        change = self.step * jacobian.apply(block.transpose_dot(dual))
        return change, self.step_intercept * float(dual.sum())


def _solve(matrix: Array, right: Array) -> Array:
    """Return matrix^-1 right for a small matrix, in the least squares sense where singular."""
    try:
        solution = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
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
