"""The terms of a factored point: spans, rays and entries, each with coordinates to re-fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import (
    Block,
    Design,
    Factored,
    Norm,
    Scores,
)
from atomlearn.core.interfaces.matrix import DenseMatrix, Found, ScoreMatrix, matrix_shape_of
from atomlearn.core.interfaces.norm import Term
from atomlearn.core.norms.combine import Nonnegative, Scaled
from atomlearn.core.norms.l1 import L1
from atomlearn.core.problem.result import MatrixPart
from atomlearn.matrices.norms.base import MatrixNorm
from atomlearn.matrices.norms.psd import PSD
from atomlearn.matrices.norms.sparse import SparseNorm, merged
from atomlearn.matrices.norms.trace import TraceNorm

Array = NDArray[np.float64]
Columns = NDArray[np.int64]

#: A vector whose part outside a span is below this share of it lies in the span.
INDEPENDENT = 1e-7


@dataclass(frozen=True, slots=True)
class Coordinates(ABC):
    """One term of W in coordinates x (m,) of a block: W_i = L x, with the gauge of x as a norm.

    term : the norm over W_i, with its factor; design : whose columns are the entries of W_i.
    """

    term: Term
    design: Design

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of coordinates m."""

    @abstractmethod
    def block(self) -> Block:
        """Return the design of the coordinates."""

    @abstractmethod
    def inner_norm(self) -> Norm:
        """Return the norm of the coordinates, without the factor."""

    @abstractmethod
    def compressed(self, x: Array) -> tuple[Coordinates, Array]:
        """Return the same term without what carries no weight."""

    @abstractmethod
    def part(self, x: Array) -> MatrixPart:
        """Return the term as results show it."""

    @property
    def norm(self) -> Norm:
        """The norm of the coordinates: its value bounds factor * norm(W_i), tight at best."""
        inner = self.inner_norm()
        return inner if self.term.factor == 1.0 else Scaled(inner, self.term.factor)


@dataclass(frozen=True, slots=True)
class Span(Coordinates):
    """W_i = left S right' with orthonormal factors, S (r, s): the trace norm of S is that of W_i.

    symmetric : left and right are one, and S is positive semidefinite; before : the factors a
    step earlier.
    """

    left: Array
    right: Array
    symmetric: bool = False
    before: tuple[Array, Array] | None = None

    @property
    def size(self) -> int:
        return int(self.left.shape[1] * self.right.shape[1])

    @property
    def is_whole(self) -> bool:
        """Whether every matrix of this shape is in the span."""
        bases = self.left.shape, self.right.shape
        return all(rows == columns for rows, columns in bases)

    def block(self) -> Block:
        return self.design.span(self.left, self.right)

    def inner_norm(self) -> Norm:
        shape = (self.left.shape[1], self.right.shape[1])
        return PSD(shape) if self.symmetric else TraceNorm(shape)

    def _core(self, x: Array) -> Array:
        return x.reshape(self.left.shape[1], self.right.shape[1])

    def compressed(self, x: Array) -> tuple[Span, Array]:
        """Return the span of the singular vectors of W_i: S becomes diagonal, without zeros."""
        S = self._core(x)
        if self.symmetric:
            values, P = np.linalg.eigh(0.5 * (S + S.T))
            kept = np.flatnonzero(values > INDEPENDENT**2 * float(np.abs(values).max(initial=0.0)))
            left = right = self.left @ P[:, kept]
        else:
            P, values, Qt = np.linalg.svd(S, full_matrices=False)
            kept = np.flatnonzero(values > INDEPENDENT**2 * float(values.max(initial=0.0)))
            left, right = self.left @ P[:, kept], self.right @ Qt[kept].T
        return replace(self, left=left, right=right), np.diag(values[kept]).reshape(-1)

    def expanded(self, x: Array, left: Array, right: Array) -> tuple[Span, Array]:
        """Return the span with more columns on either side, S padded with zeros."""
        before = self.left, self.right
        if self.symmetric:
            both = _joined(self.left, np.hstack([left, right]))
            following = replace(self, left=both, right=both, before=before)
        else:
            wider = _joined(self.left, left), _joined(self.right, right)
            following = replace(self, left=wider[0], right=wider[1], before=before)
        S = np.zeros((following.left.shape[1], following.right.shape[1]))
        S[: self.left.shape[1], : self.right.shape[1]] = self._core(x)
        return following, S.reshape(-1)

    def turns(self, matrix: ScoreMatrix) -> tuple[Array, Array]:
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
        gauge = self.term.factor * float(values.sum())
        term = self.term
        return MatrixPart(
            term.norm, term.factor, gauge, factored, tensor=term.tensor, mode=term.mode
        )


@dataclass(frozen=True, slots=True)
class Rays(Coordinates):
    """W_i = left diag(c) right', c >= 0, over atoms u v'; sum c bounds the gauge of W_i."""

    left: Array
    right: Array

    @property
    def size(self) -> int:
        return int(self.left.shape[1])

    def block(self) -> Block:
        return self.design.rays(self.left, self.right)

    def inner_norm(self) -> Norm:
        return Nonnegative(L1())

    def compressed(self, x: Array) -> tuple[Rays, Array]:
        """Return the rays in use, orthogonal on each support: their weights add up to no more."""
        kept = np.flatnonzero(x > 0)
        left, values, right = merged(self.left[:, kept], x[kept], self.right[:, kept])
        return replace(self, left=left, right=right), values

    def expanded(self, x: Array, left: Array, right: Array) -> tuple[Rays, Array]:
        """Return the rays with those of these atoms that are new, at weight zero."""
        same = (self.left.T @ left) * (self.right.T @ right)
        new = np.flatnonzero(same.max(axis=0, initial=0.0) < 1.0 - 1e-12)
        following = replace(
            self,
            left=np.hstack([self.left, left[:, new]]),
            right=np.hstack([self.right, right[:, new]]),
        )
        return following, np.append(x, np.zeros(new.size))

    def on_supports(self, v: Array) -> Found:
        """Return the best atoms on the supports of the rays for the scores X'v: no pass.

        Only the entries of X'v that the supports touch are asked for.
        """
        norm = cast(SparseNorm, self.term.norm)
        rows = np.flatnonzero(self.left.any(axis=1))
        cols = np.flatnonzero(self.right.any(axis=1))
        left, right = np.eye(self.left.shape[0])[:, rows], np.eye(self.right.shape[0])[:, cols]
        some = self.design.span(left, right).transpose_dot(v)
        Z = DenseMatrix(some.reshape(rows.size, cols.size))
        found = norm.search_on_supports(Z, self.left[rows], self.right[cols])
        return replace(found, left=left @ found.left, right=right @ found.right)

    def part(self, x: Array) -> MatrixPart:
        gauge = self.term.factor * float(x.sum())
        factored = Factored(self.left, x.copy(), self.right)
        return MatrixPart(self.term.norm, self.term.factor, gauge, factored)


@dataclass(frozen=True, slots=True)
class Entrywise(Coordinates):
    """W_i by its entries at ``columns`` (m,), under a norm of vectors that can be restricted."""

    columns: Columns

    @property
    def size(self) -> int:
        return self.columns.size

    def block(self) -> Block:
        return self.design.gather(self.columns)

    def inner_norm(self) -> Norm:
        restricted = self.term.norm.restrict(self.columns, self.design.shape[1])
        assert restricted is not None  # ``empty`` has refused all others
        return restricted

    def compressed(self, x: Array) -> tuple[Entrywise, Array]:
        kept = np.flatnonzero(x)
        return replace(self, columns=self.columns[kept]), x[kept]

    def expanded(self, x: Array, columns: Columns) -> tuple[Entrywise, Array]:
        """Return the term with these columns too, increasing; new ones at weight zero."""
        union = np.union1d(self.columns, columns)
        padded = np.zeros(union.size)
        padded[np.searchsorted(union, self.columns)] = x
        return replace(self, columns=union), padded

    def wanting(self, x: Array, scores: Scores, count: int, multiplier: float) -> Columns:
        """Return about ``count`` of the best columns that may want to enter."""
        columns = self.term.norm.best_columns(scores, count)
        threshold = multiplier * self.term.factor * self.term.norm.zero_threshold(x)
        return columns[np.abs(scores.at(columns)) > threshold] if threshold > 0 else columns

    def part(self, x: Array) -> MatrixPart:
        gauge = self.norm.value(x) if x.size else 0.0
        return MatrixPart(
            self.term.norm, self.term.factor, gauge, columns=self.columns, weights=x.copy()
        )


def _joined(basis: Array, more: Array) -> Array:
    """Return an orthonormal basis of both, the first columns unchanged."""
    sizes = np.linalg.norm(more, axis=0)
    more = more[:, sizes > 0] / sizes[sizes > 0]
    for _ in range(2):
        more = more - basis @ (basis.T @ more)
    if not more.shape[1]:
        return basis
    left, sigma, _ = np.linalg.svd(more, full_matrices=False)
    more = left[:, sigma > INDEPENDENT]
    room = basis.shape[0] - basis.shape[1]
    more = more[:, :room]
    more = more - basis @ (basis.T @ more)
    return np.hstack([basis, np.linalg.qr(more)[0]]) if more.shape[1] else basis


def empty(term: Term, design: Design) -> Coordinates:
    """Return the term at zero. ``design`` is that of the entries of this term."""
    norm = term.norm
    if isinstance(norm, MatrixNorm):
        p, q = matrix_shape_of(design)
        left, right = np.zeros((p, 0)), np.zeros((q, 0))
        if norm.coordinates == "rays":
            return Rays(term, design, left, right)
        return Span(term, design, left, right, norm.coordinates == "symmetric")
    if norm.restrict(np.zeros(0, dtype=np.int64), design.shape[1]) is None:
        raise TypeError(
            f"{norm!r} beside matrix norms must be one that can be restricted to some entries, "
            "such as norms.L1() or norms.Groups(...); use solvers.AtomGeneration() for others"
        )
    return Entrywise(term, design, np.zeros(0, dtype=np.int64))


def from_part(at_zero: Coordinates, part: MatrixPart) -> tuple[Coordinates, Array] | None:
    """Return the term where an earlier fit left it; None where it does not fit."""
    if isinstance(at_zero, Entrywise):
        if part.columns is None or part.weights is None:
            return None
        if part.columns.size and int(part.columns.max()) >= at_zero.design.shape[1]:
            return None
        return replace(at_zero, columns=part.columns), part.weights
    factored = part.factored
    shape = at_zero.design.matrix_shape
    if (
        factored is None
        or factored.shape != shape
        or type(part.norm) is not type(at_zero.term.norm)
    ):
        return None
    if isinstance(at_zero, Rays):
        rays = replace(at_zero, left=factored.left, right=factored.right)
        return rays.compressed(factored.weights)
    assert isinstance(at_zero, Span)
    values = np.diag(factored.weights).reshape(-1)
    return replace(at_zero, left=factored.left, right=factored.right), values


def usable(found: Found, threshold: float) -> tuple[Array, Array]:
    """Return the atoms found whose value is beyond the threshold."""
    kept = found.values > threshold
    return found.left[:, kept], found.right[:, kept]
