"""Scores as matrices Z (p, q) that multiply: stored in full, or at the observed entries only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

import numpy as np

from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Deadline, Scores
from atomlearn.matrices.found import Found
from atomlearn.matrices.shapes import Shape


class ScoreMatrix(ABC):
    """Scores as a matrix Z (p, q) that multiplies.

    ``memo`` remembers searches over it; ``deadline`` is when they should return what they have.
    """

    def __init__(self) -> None:
        self.memo: dict[Any, Found] = {}
        self.deadline = Deadline.never()

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """(p, q)."""

    @abstractmethod
    def dot(self, other: Array) -> Array:
        """Return Z @ other for a vector (q,) or a matrix (q, t)."""

    @abstractmethod
    def transpose_dot(self, other: Array) -> Array:
        """Return Z' @ other for a vector (p,) or a matrix (p, t)."""

    @abstractmethod
    def dense(self) -> Array:
        """Return Z as an array (p, q), read-only use; TypeError where it is too large."""


class DenseMatrix(ScoreMatrix):
    """Z stored as an array (p, q)."""

    def __init__(self, Z: Array) -> None:
        super().__init__()
        self._Z = Z

    @property
    def shape(self) -> Shape:
        return self._Z.shape[0], self._Z.shape[1]

    def dot(self, other: Array) -> Array:
        return np.asarray(self._Z @ other)

    def transpose_dot(self, other: Array) -> Array:
        return np.asarray(self._Z.T @ other)

    def dense(self) -> Array:
        return self._Z


def score_matrix(scores: Scores, shape: Shape) -> ScoreMatrix:
    """Return the scores as a matrix of this shape, the same one at every call.

    As they know themselves, else made of all of z: searches over it are then remembered with it.
    """
    known = cast("ScoreMatrix | None", scores.as_matrix)
    if known is None or known.shape != shape:
        known = DenseMatrix(np.asarray(scores.full(), dtype=np.float64).reshape(shape))
        scores.as_matrix = known
    return known


class MatrixScores(ArrayScores):
    """z stored in full, which is a matrix (p, q) row after row."""

    def __init__(self, Z: Array) -> None:
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        super().__init__(Z.reshape(-1))
        self.as_matrix = DenseMatrix(Z)


class LessFactored(ScoreMatrix):
    """Z - amount U S V', known by its products: scores of a smooth part with a ridge term."""

    def __init__(self, Z: ScoreMatrix, amount: float, U: Array, S: Array, V: Array) -> None:
        super().__init__()
        self._Z, self._left, self._right = Z, amount * (U @ S), V

    @property
    def shape(self) -> Shape:
        return self._Z.shape

    def dot(self, other: Array) -> Array:
        return self._Z.dot(other) - self._left @ (self._right.T @ other)

    def transpose_dot(self, other: Array) -> Array:
        return self._Z.transpose_dot(other) - self._right @ (self._left.T @ other)

    def dense(self) -> Array:
        return self._Z.dense() - self._left @ self._right.T


class SymmetricPart(ScoreMatrix):
    """(Z + Z') / 2 + shift I, for a square matrix of scores."""

    def __init__(self, matrix: ScoreMatrix, shift: float = 0.0) -> None:
        super().__init__()
        self._matrix, self._shift = matrix, shift

    @property
    def shape(self) -> tuple[int, int]:
        return self._matrix.shape

    def dot(self, other: Array) -> Array:
        both = self._matrix.dot(other) + self._matrix.transpose_dot(other)
        return 0.5 * both + self._shift * other

    def transpose_dot(self, other: Array) -> Array:
        return self.dot(other)

    def dense(self) -> Array:
        Z = self._matrix.dense()
        return 0.5 * (Z + Z.T) + self._shift * np.eye(Z.shape[0])
