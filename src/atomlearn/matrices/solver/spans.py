"""Spans: a low-rank term W_i = U S V' with orthonormal bases U and V; the core S is re-fitted.

Between two passes, *sweeps* improve such a term by alternating minimization over the factors of
W_i = L R'. Because ||W||_* = min (||L||_F^2 + ||R||_F^2) / 2 over W = L R' (Rennie, Srebro 2005),
each row of L is a ridge regression if R is fixed, and conversely. Losses other than the squared
loss take one Newton step. A re-fit of S cannot leave the subspaces that the last pass provided.
Sweeps can, at the cost of a few products with the factors. They change the iterate, but the
certificate (objective and duality gap) is computed afterwards, so that it remains valid. This is
local search within a greedy method (Laue 2012; Zhang, Yu, Schuurmans 2012).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    Array,
    Block,
    Factored,
    MatrixPart,
    Norm,
    Problem,
    loss_gradient,
    loss_value,
    pieces,
    unwrapped,
)
from atomlearn.matrices.scores import ScoreMatrix, Shape, less_factored, score_matrix
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.coordinates import Coordinates, Searched, TermPricing


@dataclass(frozen=True, slots=True)
class Span(Coordinates):
    """W_i = left S right' with orthonormal bases left (p, r), right (q, s) and core S (r, s).

    The coordinates ``x`` are S in row-major order. Both have the same trace norm,
    ||S||_* = ||W_i||_*. ``before`` are the bases of the previous iteration, or None.
    """

    left: Array
    right: Array
    before: tuple[Array, Array] | None = None

    @property
    def matrix_norm(self) -> Any:
        """The norm of W_i, typed as a matrix norm."""
        return self.term.norm

    @property
    def rank(self) -> int:
        """Number r of columns of the left basis."""
        return int(self.left.shape[1])

    @property
    def is_whole(self) -> bool:
        """Whether both bases span the whole space, so that every W is represented."""
        bases = self.left.shape, self.right.shape
        return all(rows == columns for rows, columns in bases)

    def block(self) -> Block:
        """Return the implicit matrix from the core S to the predictions of left S right'."""
        block: Block = unwrapped(self.design).span(self.left, self.right)
        return block

    def inner_norm(self) -> Norm:
        """Return the norm of the core S."""
        core: Norm = self.matrix_norm.of_core((self.left.shape[1], self.right.shape[1]))
        return core

    @property
    def core(self) -> Array:
        """The core S (r, s) as a matrix."""
        return self.x.reshape(self.left.shape[1], self.right.shape[1])

    def compressed(self) -> Self:
        """Return the term with the same matrix W_i in the bases of its compact SVD.

        S becomes diagonal with positive entries.
        """
        P, values, Qt = np.linalg.svd(self.core, full_matrices=False)
        return self._from_values(self.left @ P, values, self.right @ Qt.T)

    def _from_values(self, left: Array, values: Array, right: Array) -> Self:
        """Return the term left diag(values) right', without the values that are zero."""
        is_nonzero = _not_zero(values)
        return replace(
            self,
            left=left[:, is_nonzero],
            right=right[:, is_nonzero],
            x=_diagonal(values[is_nonzero]),
        )

    def expanded(self, to_add: tuple[Array, Array]) -> Self:
        """Return the term with ``to_add`` = (U, V) added to the bases; S is padded with zeros."""
        left = joined_bases(self.left, to_add[0])
        right = joined_bases(self.right, to_add[1])
        return self._padded(left, right)

    def _padded(self, left: Array, right: Array) -> Self:
        """Return the same W_i in bases ``left`` and ``right`` that extend the present ones.

        S is padded with zeros; the present bases become ``before``.
        """
        S = np.zeros((left.shape[1], right.shape[1]))
        core = self.core
        S[: core.shape[0], : core.shape[1]] = core
        before = self.left, self.right
        return replace(self, left=left, right=right, x=S.reshape(-1), before=before)

    def scores(self, pricing: TermPricing) -> ScoreMatrix:
        """Return the matrix of scores Z (p, q), the negative gradient with respect to W_i.

        ``pricing`` has the scores of the loss. A ridge term tau > 0 contributes -tau W_i.
        For a tensor Z is the unfolding along the mode of the norm.
        """
        scores = (
            pricing.scores if self.matrix_norm.tensor is None else self.design.scores(pricing.v)
        )
        matrix = score_matrix(scores, cast(Shape, self.design.traits.matrix_shape))
        if pricing.problem.tau and self.x.size:
            return less_factored(matrix, pricing.problem.tau * (self.left @ self.core), self.right)
        return matrix

    def searched(self, pricing: TermPricing) -> Searched:
        """Search for atoms and directions that extend both bases, with bounds on the polar.

        ``pricing`` has the scores and the requested effort. The polar is the dual norm of
        the scores.
        """
        matrix = self.scores(pricing)
        count = max(pricing.batch, self.rank // 2)  # grow in proportion, to reach a large rank soon
        atoms = self.matrix_norm.search(matrix, count, pricing.accuracy, pricing.thorough)
        p, q = matrix.shape
        if p * q <= SETTINGS.whole_entries:
            # Bases of the whole space make another pass unnecessary.
            to_add = ahead = np.eye(p), np.eye(q)
        else:
            # Atoms with scores of at most multiplier * factor * share cannot improve W_i now, but a
            # warm start may need them.
            share = self.matrix_norm.threshold(np.diag(self.core))
            new = atoms.above(pricing.multiplier * self.term.factor * share)
            to_add = self._with_directions(matrix, *new)
            ahead = self._with_directions(matrix, atoms.left, atoms.right)
        return Searched((atoms.lower, atoms.upper), to_add, ahead)

    def _with_directions(
        self, matrix: ScoreMatrix, left: Array, right: Array
    ) -> tuple[Array, Array]:
        """Return the atoms ``left``, ``right`` together with search directions for both bases.

        Z is ``matrix``. The directions are Z right and Z'left, the steepest descent for the factors
        of W_i, and the bases of the previous iteration. These make the re-fit similar to a
        conjugate gradient step, as in LOBPCG for eigenvectors. [Knyazev 2001,
        doi:10.1137/S1064827500366124]
        """
        if not self.x.size:
            return left, right
        before = self.before or (self.left[:, :0], self.right[:, :0])
        products = matrix.dot(self.right), matrix.transpose_dot(self.left)
        return (
            np.hstack([products[0], before[0], left]),
            np.hstack([products[1], before[1], right]),
        )

    def sweeps(self, problem: Problem) -> bool:
        """Return whether alternating ridge regressions can replace a re-fit of the core S."""
        # The ridge parameter is the multiplier of the norm, which only the penalized form fixes.
        # The samples must not be coupled, because each row or column is a regression of its own.
        is_unridged = problem.regularizer.form == "penalized" and problem.tau == 0.0
        separate = is_unridged and problem.loss.coupled == 1
        return separate and unwrapped(self.design).ridge_steps() is not None

    def swept(
        self, problem: Problem, linear: Array, intercept: float, enough: float
    ) -> tuple[Coordinates, Array]:
        """Return the term and the predictions of all terms after alternating ridge regressions.

        ``linear`` (n_samples,) are the predictions of all terms without ``intercept``. Sweeps stop
        when one decreases the objective by at most ``enough``. The core S must be diagonal without
        zeros, as ``compressed`` makes it. A sweep updates the left factor, then the right one, and
        keeps an update if the objective decreases.
        """
        steps = unwrapped(self.design).ridge_steps()(problem.weight)
        price = problem.regularizer.amount * self.term.factor
        # The balanced factors: W_i = left right', with equal squared norms of their columns.
        root = np.sqrt(np.diag(self.core))
        left = self.left * root
        right = self.right * root
        other_predictions = linear - steps.predictions(left, right)

        def objective(left: Array, right: Array, linear: Array) -> float:
            """Return loss + price (||left||_F^2 + ||right||_F^2) / 2 at these factors."""
            size = float((left**2).sum() + (right**2).sum())
            return loss_value(problem, linear, intercept) + 0.5 * price * size

        initial = current = objective(left, right, linear)
        while True:
            previous = current
            for is_left in (True, False):
                updated, fixed = (left, right) if is_left else (right, left)
                slopes = _derivatives(problem, linear, intercept)
                factor = steps.step(is_left, *slopes, updated, fixed, price)
                del slopes  # frees the memory of two vectors of n_samples
                new_left, new_right = (factor, right) if is_left else (left, factor)
                trial = steps.predictions(new_left, new_right)
                trial += other_predictions
                value = objective(new_left, new_right, trial)
                if value < current:
                    left = new_left
                    right = new_right
                    linear = trial
                    current = value
            # Balanced factors of the same W_i have the smallest penalty.
            left, right = _balanced(left, right)
            current = objective(left, right, linear)
            # A sweep has to be worth its cost, which grows with the square of the rank.
            rank = left.shape[1]
            least = max(enough, SETTINGS.sweep_gain * rank**2 * (initial - current))
            if not rank or previous - current <= least or problem.deadline.passed:
                break
        root = np.linalg.norm(left, axis=0)
        return replace(self, left=left / root, right=right / root, x=_diagonal(root**2)), linear

    def part(self) -> MatrixPart:
        """Return the term as a part of the result: its singular values and vectors."""
        span = self.compressed()
        values = np.diag(span.core).copy()
        factored = Factored(span.left, values, span.right)
        norm = self.matrix_norm
        factor = self.term.factor
        return MatrixPart(norm, factor, span.gauge, factored, tensor=norm.tensor, mode=norm.mode)

    def with_value_of(self, part: MatrixPart) -> Self | None:
        """Return the term with the factors of ``part`` (warm start); None if the shapes differ."""
        if (factors := self.factors_of(part)) is None:
            return None
        return replace(self, left=factors.left, right=factors.right, x=_diagonal(factors.weights))

    def check(self) -> None:
        """Raise AssertionError unless both bases are orthonormal."""
        for basis in (self.left, self.right):
            np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)


@dataclass(frozen=True, slots=True)
class PlainSpan(Span):
    """A span whose norm is not the least sum of squares of two factors: no sweeps."""

    sweeps = Coordinates.sweeps


@dataclass(frozen=True, slots=True)
class SymmetricSpan(PlainSpan):
    """W_i = U S U' with one orthonormal basis U for both sides, S positive semidefinite."""

    def compressed(self) -> Self:
        """Return the term with the same matrix W_i in the basis of its eigenvectors.

        S becomes diagonal with positive entries.
        """
        values, P = np.linalg.eigh(0.5 * (self.core + self.core.T))
        return self._from_values(self.left @ P, values, self.left @ P)

    def expanded(self, to_add: tuple[Array, Array]) -> Self:
        """Return the term with the columns of both matrices ``to_add`` joined to its one basis."""
        basis = joined_bases(self.left, np.hstack(to_add))
        return self._padded(basis, basis)


def _diagonal(values: Array) -> Array:
    """Return the matrix diag(values), flattened in row-major order."""
    return np.diag(values).reshape(-1)


def _not_zero(values: Array) -> NDArray[np.int64]:
    """Return the positions of the values that exceed rounding, relative to the largest one."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.flatnonzero(values > SETTINGS.rounding * largest)


def joined_bases(basis: Array, more: Array) -> Array:
    """Return ``basis`` extended to an orthonormal basis of the span of ``basis`` and ``more``.

    The columns of ``basis`` (p, r) are orthonormal and remain the first r columns. Columns of
    ``more`` (p, t) that are in its span, up to rounding, add nothing.
    """
    sizes = np.linalg.norm(more, axis=0)
    more = more[:, sizes > 0] / sizes[sizes > 0]
    # Gram-Schmidt is applied twice, against rounding.
    for _ in range(2):
        more = more - basis @ (basis.T @ more)
    if not more.shape[1]:
        return basis
    left, sigma, _ = np.linalg.svd(more, full_matrices=False)
    more = left[:, sigma > np.sqrt(SETTINGS.rounding)]
    # No more columns than the space has dimensions left; then once more against rounding.
    n_left = basis.shape[0] - basis.shape[1]
    more = more[:, :n_left]
    more = more - basis @ (basis.T @ more)
    return np.hstack([basis, np.linalg.qr(more)[0]]) if more.shape[1] else basis


def _derivatives(problem: Problem, linear: Array, intercept: float) -> tuple[Array, Array]:
    """Return the first and second derivatives of the loss in each prediction, two (n_samples,).

    ``linear`` (n_samples,) are the predictions without ``intercept``. The rows are computed piece
    by piece, so that no other vector of this size is formed.
    """
    slope = loss_gradient(problem, linear, intercept)
    curvature = np.empty_like(slope)
    samples = problem.y, linear, problem.weight, intercept
    for rows, piece_loss, y, z, weight in pieces.each_piece(problem.loss, *samples):
        curvature[rows] = piece_loss.curvature(y, z, weight)
    return slope, curvature


def _balanced(left: Array, right: Array) -> tuple[Array, Array]:
    """Return the factors U D and V D of left right' = U D^2 V', the compact SVD with D diagonal.

    Among all factors with this product they have the smallest sum of squares.
    """
    left, left_core = np.linalg.qr(left)
    right, right_core = np.linalg.qr(right)
    P, values, Qt = np.linalg.svd(left_core @ right_core.T)
    is_nonzero = _not_zero(values)
    root = np.sqrt(values[is_nonzero])
    return left @ (P[:, is_nonzero] * root), right @ (Qt[is_nonzero].T * root)
