"""The linear system of a semismooth Newton step, in sample space or in coordinate space.

Let D = diag(f''(z)) be the curvatures of the loss f, A the block of columns, and J the Jacobian of
the proximal map with step size sigma. Let Q be the unpenalized columns (a column of ones for an
intercept), with coefficients c and step size sigma_q, and K = sigma A J A' + sigma_q Q Q'. The
unknown is dz, the change of the predictions z. The Newton equation of the dual of a proximal point
step is

    (I + K D) dz = -r,   r = z - A w - Q c.

Its solution is  dz = -r + A h + Q dc,  with h and dc the changes of the weights w and of c. It is
computed from the smaller of two symmetric positive definite systems. The unknowns of the first are
the columns of the support, those where J is not zero (coordinate space). The unknowns of the second
are the samples with D > 0 (sample space). The Woodbury identity accounts for the low-rank part of
J. [Li, Sun, Toh 2018, section 3.3]
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
        """Return dz, the change of the predictions, (n,), from the smaller system.

        ``residual`` (n,) is r in the Newton equation. LinAlgError is raised if the system is
        singular, or too large to be factored.
        """
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
        """Solve by Cholesky over the support and free columns; return the changes of w and c.

        residual : r, (n,). support : the columns at which J is not zero.

        The matrix is M = I + s G s. G is the Gram matrix of the columns [A Q] weighted by D, and s
        are the roots of sigma diag(J) for the columns of A, of sigma_q for those of Q.
        """
        weighted = self.curvature * residual
        used = support.size  # the number of columns in the support
        weighted_free = self.curvature[:, None] * self.free
        # G: the columns of the support first, then the free ones.
        augmented = np.empty((used + self.free.shape[1],) * 2)
        augmented[:used, :used] = self.block.gram(self.curvature, support)
        for row, column in enumerate(weighted_free.T, start=used):
            augmented[row, :used] = self.block.scores(column).full()[support]
        augmented[:used, used:] = augmented[used:, :used].T
        augmented[used:, used:] = self.free.T @ weighted_free
        # I + s G s and its factor.
        scale = np.full(augmented.shape[0], np.sqrt(self.step_free))
        scale[:used] = np.sqrt(self.step * self.jacobian.diagonal[support])
        matrix = scale[:, None] * augmented * scale
        matrix[np.diag_indices(scale.size)] += 1.0
        Deadline.current().check()
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        products = self.block.scores(weighted).full()[support]
        target = np.append(products, self.free.T @ weighted)
        # Without the low-rank part V C V' of J, the change is x = s M^-1 s target. With it,
        # x = V u + s M^-1 s (target - G V u) for ``weights`` u with
        # ((sigma C)^-1 + V'(G - G s M^-1 s G) V) u = V'(target - G s M^-1 s target).
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
        weight_change = np.zeros(self.block.shape[1])
        weight_change[support] = change[:used]
        return weight_change, change[used:]

    def _sample_space(
        self, residual: Array, support: NDArray[np.int64], curved: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Solve by Cholesky over the samples with D > 0; return the changes of w and c.

        residual : r, (n,). support : the columns at which J is not zero. curved : the samples with
        D > 0.

        The matrix is M = I + D^1/2 (sigma A diag(J) A' + sigma_q Q Q') D^1/2. If J has a low-rank
        part V C V', the right side t is replaced by t - B u with B = D^1/2 A V, where u solves
        ((sigma C)^-1 + B'M^-1 B) u = B'M^-1 t.
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
        if factors.shape[1]:  # the low-rank part of J
            used = np.flatnonzero(factors.any(axis=1))
            images = self.block.gather(used).dense()[curved] @ factors[used]
            images *= root[:, None]
            solved = cho_solve(factor, images, check_finite=False)
            weights = self._woodbury(images.T @ solved, solved.T @ target)
            target = target - images @ weights
        # From the solution over samples to the changes of w and c.
        dual = np.zeros(residual.size)
        dual[curved] = root * cho_solve(factor, target, check_finite=False)
        change = self.step * self.jacobian.apply(self.block.scores(dual).full())
        return change, self.step_free * (self.free.T @ dual)

    def _woodbury(self, inner: Array, right: Array) -> Array:
        """Return u = ((sigma C)^-1 + inner)^-1 right, (r,), in a form that allows C = 0.

        C are the r coefficients of the low-rank part V C V' of J, and sigma is the step size. The
        form is u = (I + sigma C inner)^-1 sigma C right. inner : (r, r). right : (r,).
        """
        scaled = self.step * self.jacobian.coefficients
        matrix = scaled[:, None] * inner
        matrix[np.diag_indices(right.size)] += 1.0
        return _solve(matrix, scaled * right)


def _of_samples(block: Block, diagonal: Array, rows: NDArray[np.int64]) -> Array:
    """Return A diag(diagonal) A' over the samples ``rows``, (n_rows, n_rows).

    A (n_samples, m) is the block, and diagonal (m,) >= 0.
    """
    # The entries of ``diagonal`` for copies of a column are added up, so that each distinct column
    # is used once.
    base, positions = distinct_columns(block)
    sums: Array = np.bincount(positions, diagonal, base.shape[1]).astype(np.float64, copy=False)
    used = np.flatnonzero(sums)
    if base.traits.is_sparse:
        return weighted_squares(base.stored()[:, used][rows].T, sums[used])
    array = base.dense()[rows]
    roots = np.sqrt(sums)
    deadline = Deadline.current()
    n_samples = array.shape[0]

    def product(part: slice) -> Array:
        """Return the sum, over the ``used`` columns a_j in ``part``, of sums_j times a_j a_j'.

        The columns are scaled in pieces that fit into memory.
        """
        total = np.zeros((n_samples, n_samples))
        for piece in LIMITS.pieces(part.stop - part.start, n_samples):
            deadline.check()
            chosen = used[part][piece]
            scaled = array[:, chosen] * roots[chosen]
            total += scaled @ scaled.T
        return total

    # The parts run in several threads if that number of multiplications is large enough.
    return sum_of_pieces(product, used.size, 0.5 * used.size * n_samples**2)


def _solve(matrix: Array, right: Array) -> Array:
    """Return matrix^-1 right for a small square matrix, or a least-squares solution if singular."""
    try:
        solution = np.linalg.solve(matrix, right)
    except LinAlgError:
        solution = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return np.asarray(solution)


def resolvent(jacobian: ProxJacobian, damping: Array) -> tuple[ProxJacobian, ProxJacobian]:
    """Return (I - K)^-1 and (I - K)^-1 K for K = S J S with S = diag(1 + damping)^-1/2.

    J is ``jacobian``, a diagonal plus low-rank matrix (m, m), and so are both results. ``damping``
    (m,) > 0 keeps I - K invertible where J is the identity. By the Woodbury identity, with
    B = (I - diagonal of K)^-1 and V C V' the low-rank part of K,
    (I - K)^-1 = B + B V (I - C V'B V)^-1 C V' B. Rows where J is zero are identity rows.
    """
    # ``spread``, the diagonal of B, is 1 / (1 - d / (1 + damping)) for the diagonal d of J. It is
    # computed without the digits that 1 - d / (1 + damping) loses. The second result is the first
    # minus I, so that its diagonal part is ``gains`` = spread - 1.
    spread = (1.0 + damping) / ((1.0 - jacobian.diagonal) + damping)
    gains = jacobian.diagonal / ((1.0 - jacobian.diagonal) + damping)
    factors = jacobian.dense_factors()
    if not factors.shape[1]:
        return ProxJacobian(spread), ProxJacobian(gains)
    # The low-rank parts of both results are equal: B V M V' B, with M = (I - C V'B V)^-1 C given by
    # its eigenvalues and eigenvectors. ``factors`` become V, and ``images`` are B V.
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
