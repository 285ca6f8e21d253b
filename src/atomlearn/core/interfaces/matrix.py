"""Matrices: W (p, q) is a vector of p q columns in row-major order that also knows its shape.

Every norm of vectors works on such a design unchanged. Matrix norms ask for more: scores that
multiply like a matrix, and predictions of factored points, so that W is never formed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.design import Design, Scores
from atomlearn.core.interfaces.norm import Norm

Array = NDArray[np.float64]
Shape = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search for the best rank-one atoms u v' of a matrix norm has found, best first.

    left : (p, t); right : (q, t); values : (t,) <u_i v_i', Z> (times 1 / gauge of the atom, 1);
    lower, upper : lower <= gauge°(Z) <= upper, where ``lower`` is the best value found (0 where
    no atom is positive). ``upper`` may hold with a failure probability that its norm states.
    """

    left: Array
    right: Array
    values: Array
    lower: float
    upper: float


class ScoreMatrix(ABC):
    """Scores as a matrix Z (p, q) that multiplies; ``memo`` remembers searches over it."""

    def __init__(self) -> None:
        self.memo: dict[Any, Found] = {}

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

    @abstractmethod
    def frobenius(self) -> float:
        """Return the Frobenius norm of Z."""


@runtime_checkable
class SupportsScoreMatrix(Protocol):
    """Scores that know they are a matrix."""

    def matrix(self) -> ScoreMatrix:
        """Return Z, the same object at every call."""
        ...


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

    def frobenius(self) -> float:
        return float(np.linalg.norm(self._Z))


def score_matrix(scores: Scores, shape: Shape) -> ScoreMatrix:
    """Return the scores as a matrix of this shape: as they know themselves, else from all of z."""
    if isinstance(scores, SupportsScoreMatrix):
        matrix = scores.matrix()
        if matrix.shape == shape:
            return matrix
    return DenseMatrix(np.asarray(scores.full(), dtype=np.float64).reshape(shape))


class RidgeSteps(Protocol):
    """Steps of Newton for the rows of one factor of W = left right', the other one held.

    slope, curvature : (n_samples,) of the loss at the predictions of W, and amount / 2 times the
    squared norms of the factors: exact where the loss is squared.
    """

    def predictions(self, left: Array, right: Array) -> Array:
        """Return the predictions of left right'."""
        ...

    def left(
        self, slope: Array, curvature: Array, left: Array, right: Array, amount: float
    ) -> Array:
        """Return the next left factor."""
        ...

    def right(
        self, slope: Array, curvature: Array, left: Array, right: Array, amount: float
    ) -> Array:
        """Return the next right factor."""
        ...


@dataclass(frozen=True, slots=True)
class Factored:
    """W = left diag(weights) right', kept as factors: (p + q + 1) r numbers for rank r.

    left : (p, r); weights : (r,); right : (q, r). Immutable; ``toarray`` is the only method that
    forms W.
    """

    left: Array
    weights: Array
    right: Array
    shape: Shape = field(default=(0, 0))

    def __post_init__(self) -> None:
        shape = (self.left.shape[0], self.right.shape[0])
        rank = self.weights.shape[0]
        if self.left.shape[1:] != (rank,) or self.right.shape[1:] != (rank,):
            raise ValueError(
                f"Factored needs left (p, r), weights (r,) and right (q, r), got "
                f"{self.left.shape}, {self.weights.shape} and {self.right.shape}"
            )
        object.__setattr__(self, "shape", shape)

    @property
    def rank(self) -> int:
        """Number of terms r, the rank of W where the factors are independent."""
        return int(self.weights.shape[0])

    @property
    def T(self) -> Factored:
        """The transpose, factored."""
        return Factored(self.right, self.weights, self.left)

    def dot(self, other: Array) -> Array:
        """Return W @ other in O((p + q) r) for each column."""
        inner = self.right.T @ other
        return np.asarray((self.left * self.weights) @ inner)

    def at(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> Array:
        """Return W[rows_i, cols_i], shape (len(rows),): O(r) each."""
        result = np.empty(len(rows))
        scaled = self.left * self.weights
        for start in range(0, len(rows), 2**16):
            part = slice(start, start + 2**16)
            np.einsum("ij,ij->i", scaled[rows[part]], self.right[cols[part]], out=result[part])
        return result

    def toarray(self) -> Array:
        """Return W as a dense (p, q) array."""
        return np.asarray((self.left * self.weights) @ self.right.T)


def matrix_shape_of(design: Design) -> Shape:
    """Return (p, q) of a design whose columns are the entries of a matrix; else TypeError."""
    shape = design.matrix_shape
    if shape is None:
        raise TypeError(
            f"{type(design).__name__} is no design of matrices; use "
            "designs.as_matrix_design(design, shape)"
        )
    return shape


def shaped(norm: Norm, design: Design) -> Norm:
    """Return the norm with the shape of the design's matrix, where it asks for one."""
    return norm.with_shape(design.matrix_shape)


def check_tensor_shape(owner: str, shape: object) -> tuple[int, ...]:
    """Return the shape as a tuple of whole numbers >= 1, or raise with the remedy."""
    try:
        sizes = tuple(int(size) for size in shape)  # type: ignore[attr-defined]
        exact = all(size == given for size, given in zip(sizes, shape, strict=True))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        sizes, exact = (), False
    if not exact or len(sizes) < 2 or min(sizes) < 1 or math.prod(sizes) >= 2**62:
        raise ValueError(
            f"{owner}: shape must be two or more whole numbers >= 1, got {shape!r}; "
            "pass the shape of the matrix such as (100, 20)"
        )
    return sizes
