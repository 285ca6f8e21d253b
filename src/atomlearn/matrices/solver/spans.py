"""Spans: a low-rank term of W in bases for its rows and columns, re-fitted together.

This module also has sweeps, which fit the factors of such a term in turn, row by row, between two
passes. ||W||_* = min (||L||^2 + ||R||^2) / 2 over W = L R' (Rennie, Srebro 2005): with R fixed,
each row of L is a ridge regression, or, for losses other than the squared one, one Newton step of
it. A span can turn only into the directions that the last pass added to it; sweeps turn it freely,
at the price of about a few products with its factors. They change the point, never a bound: their
result is priced like any other point (local search within a greedy method: Laue 2012; Zhang, Yu,
Schuurmans 2012).
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
    """W_i = left S right' with orthonormal factors, S (r, s): the trace norm of S is that of W_i.

    x : S, row by row; before : the factors of the previous step.
    """

    left: Array
    right: Array
    before: tuple[Array, Array] | None = None

    @property
    def matrix_norm(self) -> Any:
        """The norm over W_i, typed as one of matrices."""
        return self.term.norm

    @property
    def rank(self) -> int:
        return int(self.left.shape[1])

    @property
    def is_whole(self) -> bool:
        bases = self.left.shape, self.right.shape
        return all(rows == columns for rows, columns in bases)

    def block(self) -> Block:
        block: Block = unwrapped(self.design).span(self.left, self.right)
        return block

    def inner_norm(self) -> Norm:
        core: Norm = self.matrix_norm.of_core((self.left.shape[1], self.right.shape[1]))
        return core

    @property
    def core(self) -> Array:
        """S (r, s)."""
        return self.x.reshape(self.left.shape[1], self.right.shape[1])

    def compressed(self) -> Self:
        """Return the span of the singular vectors of W_i: S becomes diagonal, without zeros."""
        P, values, Qt = np.linalg.svd(self.core, full_matrices=False)
        return self._of_values(self.left @ P, values, self.right @ Qt.T)

    def _of_values(self, left: Array, values: Array, right: Array) -> Self:
        """Return the term left diag(values) right', without zeros."""
        kept = _not_zero(values)
        return replace(self, left=left[:, kept], right=right[:, kept], x=_diagonal(values[kept]))

    def expanded(self, wanting: tuple[Array, Array]) -> Self:
        """Return the span with more columns on both sides, and S padded with zeros."""
        left = joined_bases(self.left, wanting[0])
        right = joined_bases(self.right, wanting[1])
        return self._padded(left, right)

    def _padded(self, left: Array, right: Array) -> Self:
        S = np.zeros((left.shape[1], right.shape[1]))
        core = self.core
        S[: core.shape[0], : core.shape[1]] = core
        before = self.left, self.right
        return replace(self, left=left, right=right, x=S.reshape(-1), before=before)

    def scores(self, at: TermPricing) -> ScoreMatrix:
        """Return the scores of the smooth part as a matrix: those of W, or of its unfolding."""
        scores = at.scores if self.matrix_norm.tensor is None else self.design.scores(at.v)
        matrix = score_matrix(scores, cast(Shape, self.design.traits.matrix_shape))
        if at.problem.tau and self.x.size:
            return less_factored(matrix, at.problem.tau * (self.left @ self.core), self.right)
        return matrix

    def searched(self, at: TermPricing) -> Searched:
        matrix = self.scores(at)
        count = max(at.batch, self.rank // 2)  # a large rank is not reached in many small steps
        found = self.matrix_norm.search(matrix, count, at.accuracy, at.thorough)
        p, q = matrix.shape
        if p * q <= SETTINGS.whole_entries:
            wanting = ahead = np.eye(p), np.eye(q)
        else:
            new = found.above(at.multiplier * self.term.factor)
            wanting = self._with_turns(matrix, *new)
            ahead = self._with_turns(matrix, found.left, found.right)
        return Searched((found.lower, found.upper), wanting, ahead)

    def _with_turns(self, matrix: ScoreMatrix, left: Array, right: Array) -> tuple[Array, Array]:
        """Return these atoms with directions in which the factors would turn, for each side.

        These are Z right and Z' left, the directions of steepest descent, and the factors of the
        previous step, with which the re-fit makes steps of conjugate gradients, as LOBPCG does for
        eigenvectors. [Knyazev 2001, doi:10.1137/S1064827500366124]
        """
        if not self.x.size:
            return left, right
        before = self.before or (self.left[:, :0], self.right[:, :0])
        turned = matrix.dot(self.right), matrix.transpose_dot(self.left)
        return (
            np.hstack([turned[0], before[0], left]),
            np.hstack([turned[1], before[1], right]),
        )

    def sweeps(self, problem: Problem) -> bool:
        # The price of its gauge must be known in advance, which only the penalized form provides.
        plain = problem.regularizer.form == "penalized" and problem.tau == 0.0
        separate = plain and problem.loss.coupled == 1
        return separate and unwrapped(self.design).ridge_steps() is not None

    def swept(
        self, problem: Problem, linear: Array, intercept: float, enough: float
    ) -> tuple[Coordinates, Array]:
        """Return the term and the predictions of all terms after sweeps; it is compressed."""
        steps = unwrapped(self.design).ridge_steps()(problem.weight)
        price = problem.regularizer.amount * self.term.factor
        root = np.sqrt(np.diag(self.core))
        left = self.left * root
        right = self.right * root
        others = linear - steps.predictions(left, right)

        def objective(left: Array, right: Array, linear: Array) -> float:
            """The loss and the price of the factors, without the gauges of other terms."""
            size = float((left**2).sum() + (right**2).sum())
            return loss_value(problem, linear, intercept) + 0.5 * price * size

        first = after = objective(left, right, linear)
        while True:
            before = after
            for is_left in (True, False):
                own, held = (left, right) if is_left else (right, left)
                slopes = _derivatives(problem, linear, intercept)
                factor = steps.step(is_left, *slopes, own, held, price)
                del slopes  # frees two numbers for each sample
                turned_left, turned_right = (factor, right) if is_left else (left, factor)
                trial = steps.predictions(turned_left, turned_right)
                trial += others
                value = objective(turned_left, turned_right, trial)
                if value < after:
                    left = turned_left
                    right = turned_right
                    linear = trial
                    after = value
            left, right = _balanced(left, right)
            after = objective(left, right, linear)
            rank = left.shape[1]
            least = max(enough, SETTINGS.sweep_gain * rank**2 * (first - after))
            if not rank or before - after <= least or problem.deadline.passed:
                break
        root = np.linalg.norm(left, axis=0)
        return replace(self, left=left / root, right=right / root, x=_diagonal(root**2)), linear

    def part(self) -> MatrixPart:
        span = self.compressed()
        values = np.diag(span.core).copy()
        factored = Factored(span.left, values, span.right)
        norm = self.matrix_norm
        factor = self.term.factor
        gauge = factor * float(values.sum())
        return MatrixPart(norm, factor, gauge, factored, tensor=norm.tensor, mode=norm.mode)

    def placed(self, part: MatrixPart) -> Self | None:
        if (known := self.factors_of(part)) is None:
            return None
        return replace(self, left=known.left, right=known.right, x=_diagonal(known.weights))

    def check(self) -> None:
        for basis in (self.left, self.right):
            np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)


@dataclass(frozen=True, slots=True)
class SymmetricSpan(Span):
    """W_i = U S U' with one orthonormal basis U for both sides, S positive semidefinite."""

    sweeps = Coordinates.sweeps

    def compressed(self) -> Self:
        """Return the span of the eigenvectors of W_i: S becomes diagonal, without zeros."""
        values, P = np.linalg.eigh(0.5 * (self.core + self.core.T))
        return self._of_values(self.left @ P, values, self.left @ P)

    def expanded(self, wanting: tuple[Array, Array]) -> Self:
        both = joined_bases(self.left, np.hstack(wanting))
        return self._padded(both, both)


def _diagonal(values: Array) -> Array:
    """Return diag(values), row after row."""
    return np.diag(values).reshape(-1)


def _not_zero(values: Array) -> NDArray[np.int64]:
    """Return the positions of positive values that are not rounding relative to the largest."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.flatnonzero(values > SETTINGS.rounding * largest)


def joined_bases(basis: Array, more: Array) -> Array:
    """Return an orthonormal basis of both, the first columns unchanged."""
    sizes = np.linalg.norm(more, axis=0)
    more = more[:, sizes > 0] / sizes[sizes > 0]
    for _ in range(2):
        more = more - basis @ (basis.T @ more)
    if not more.shape[1]:
        return basis
    left, sigma, _ = np.linalg.svd(more, full_matrices=False)
    more = left[:, sigma > np.sqrt(SETTINGS.rounding)]
    room = basis.shape[0] - basis.shape[1]
    more = more[:, :room]
    more = more - basis @ (basis.T @ more)
    return np.hstack([basis, np.linalg.qr(more)[0]]) if more.shape[1] else basis


def _derivatives(problem: Problem, linear: Array, intercept: float) -> tuple[Array, Array]:
    """Return the first and the second derivatives of the loss at each sample."""
    slope = loss_gradient(problem, linear, intercept)
    curvature = np.empty_like(slope)
    samples = problem.y, linear, problem.weight, intercept
    for at, own, y, z, s in pieces.each_piece(problem.loss, *samples):
        curvature[at] = own.curvature(y, z, s)
    return slope, curvature


def _balanced(left: Array, right: Array) -> tuple[Array, Array]:
    """Return the singular vectors of the product, times the roots of its values that are not 0."""
    left, left_core = np.linalg.qr(left)
    right, right_core = np.linalg.qr(right)
    P, values, Qt = np.linalg.svd(left_core @ right_core.T)
    kept = _not_zero(values)
    root = np.sqrt(values[kept])
    return left @ (P[:, kept] * root), right @ (Qt[kept].T * root)
