"""Spans: a low-rank term of W within bases for its rows and columns, all re-fitted at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Block, Norm
from atomlearn.core.interfaces.factored import Factored, MatrixPart
from atomlearn.matrices.scores import LessFactored, ScoreMatrix, score_matrix
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.shapes import Shape
from atomlearn.matrices.solver.coordinates import Coordinates, Placed, Searched, TermPricing


@dataclass(frozen=True, slots=True)
class Span(Coordinates):
    """W_i = left S right' with orthonormal factors, S (r, s): the trace norm of S is that of W_i.

    before : the factors a step earlier.
    """

    kind: ClassVar[Literal["span"]] = "span"

    left: Array
    right: Array
    before: tuple[Array, Array] | None = None

    @property
    def size(self) -> int:
        return int(self.left.shape[1] * self.right.shape[1])

    @property
    def rank(self) -> int:
        return int(self.left.shape[1])

    @property
    def is_whole(self) -> bool:
        bases = self.left.shape, self.right.shape
        return all(rows == columns for rows, columns in bases)

    @property
    def turns_freely(self) -> bool:
        return not self.is_whole and self.rank > 0

    def block(self) -> Block:
        block: Block = self.design.of_matrix.span(self.left, self.right)
        return block

    def inner_norm(self) -> Norm:
        core: Norm = self.matrix_norm.of_core((self.left.shape[1], self.right.shape[1]))
        return core

    def core(self, x: Array) -> Array:
        """Return S (r, s)."""
        return x.reshape(self.left.shape[1], self.right.shape[1])

    def compressed(self, x: Array) -> tuple[Span, Array]:
        """Return the span of the singular vectors of W_i: S becomes diagonal, without zeros."""
        P, values, Qt = np.linalg.svd(self.core(x), full_matrices=False)
        kept = _not_zero(values)
        left, right = self.left @ P[:, kept], self.right @ Qt[kept].T
        return replace(self, left=left, right=right), np.diag(values[kept]).reshape(-1)

    def expanded(self, x: Array, wanting: tuple[Array, Array]) -> tuple[Span, Array]:
        """Return the span with more columns on either side, S padded with zeros."""
        left, right = joined_bases(self.left, wanting[0]), joined_bases(self.right, wanting[1])
        following = replace(self, left=left, right=right, before=(self.left, self.right))
        return following, self._padded(x, left.shape[1], right.shape[1])

    def _padded(self, x: Array, rows: int, columns: int) -> Array:
        S = np.zeros((rows, columns))
        S[: self.left.shape[1], : self.right.shape[1]] = self.core(x)
        return S.reshape(-1)

    def scores(self, x: Array, at: TermPricing) -> ScoreMatrix:
        """Return the scores of the smooth part as a matrix: those of W, or of its own unfolding."""
        scores = at.scores if self.matrix_norm.tensor is None else self.design.scores(at.v)
        matrix = score_matrix(scores, cast(Shape, self.design.matrix_shape))
        if at.tau and x.size:
            return LessFactored(matrix, at.tau, self.left, self.core(x), self.right)
        return matrix

    def searched(self, x: Array, at: TermPricing) -> Searched:
        matrix = self.scores(x, at)
        count = max(at.batch, self.rank // 2)  # a large rank is not reached in many small steps
        found = self.matrix_norm.search(matrix, count, at.accuracy, at.thorough)
        p, q = matrix.shape
        if p * q <= SETTINGS.whole_entries:
            wanting = ahead = np.eye(p), np.eye(q)
        else:
            turned = self._turns(matrix) if x.size else (np.zeros((p, 0)), np.zeros((q, 0)))
            left, right = found.above(at.multiplier * self.term.factor)
            wanting = np.hstack([turned[0], left]), np.hstack([turned[1], right])
            ahead = np.hstack([turned[0], found.left]), np.hstack([turned[1], found.right])
        return Searched((found.lower, found.upper), wanting, ahead)

    def _turns(self, matrix: ScoreMatrix) -> tuple[Array, Array]:
        """Return directions in which the factors would turn, for each side.

        Z right and Z' left, those of steepest descent; and the factors a step earlier, with which
        the re-fit makes steps of conjugate gradients of them, as LOBPCG does for eigenvectors.
        [Knyazev 2001, doi:10.1137/S1064827500366124]
        """
        left, right = matrix.dot(self.right), matrix.transpose_dot(self.left)
        if self.before is None:
            return left, right
        return np.hstack([left, self.before[0]]), np.hstack([right, self.before[1]])

    def part(self, x: Array) -> MatrixPart:
        span, diagonal = self.compressed(x)
        rank = span.left.shape[1]
        values = np.diag(diagonal.reshape(rank, rank)).copy()
        factored = Factored(span.left, values, span.right)
        norm, factor = self.matrix_norm, self.term.factor
        gauge = factor * float(values.sum())
        return MatrixPart(norm, factor, gauge, factored, tensor=norm.tensor, mode=norm.mode)

    def placed(self, part: MatrixPart) -> Placed | None:
        if (known := self.factors_of(part)) is None:
            return None
        values = np.diag(known.weights).reshape(-1)
        return replace(self, left=known.left, right=known.right), values

    def check(self) -> None:
        for basis in (self.left, self.right):
            np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)


@dataclass(frozen=True, slots=True)
class SymmetricSpan(Span):
    """W_i = U S U' with one orthonormal basis U for both sides, S positive semidefinite."""

    @property
    def turns_freely(self) -> bool:
        return False

    def compressed(self, x: Array) -> tuple[Span, Array]:
        """Return the span of the eigenvectors of W_i: S becomes diagonal, without zeros."""
        S = self.core(x)
        values, P = np.linalg.eigh(0.5 * (S + S.T))
        kept = _not_zero(values)
        basis = self.left @ P[:, kept]
        return replace(self, left=basis, right=basis), np.diag(values[kept]).reshape(-1)

    def expanded(self, x: Array, wanting: tuple[Array, Array]) -> tuple[Span, Array]:
        both = joined_bases(self.left, np.hstack(wanting))
        following = replace(self, left=both, right=both, before=(self.left, self.right))
        return following, self._padded(x, both.shape[1], both.shape[1])


def _not_zero(values: Array) -> NDArray[np.int64]:
    """Return the positions of positive values that are not rounding beside the largest."""
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
