"""Scores as matrices Z (p, q) that multiply: stored in full, or at the observed entries only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Deadline, Scores
from atomlearn.matrices.found import Found
from atomlearn.matrices.shapes import Shape


@dataclass(eq=False, slots=True)
class ScoreMatrix:
    """Scores as a matrix Z (p, q) that multiplies.

    dot : Z @ other for a vector (q,) or a matrix (q, t); transpose_dot : Z' @ other; dense : makes
    the array (p, q), read-only use, or raises TypeError where it is too large; memo : what searches
    over it found; deadline : when they should return what they have.
    """

    shape: Shape
    dot: Callable[[Array], Array]
    transpose_dot: Callable[[Array], Array]
    dense: Callable[[], Array]
    memo: dict[Any, Found] = field(default_factory=dict)
    deadline: Deadline = field(default_factory=Deadline.never)


def dense_matrix(Z: Array) -> ScoreMatrix:
    """Return Z (p, q), stored as an array."""
    shape = Z.shape[0], Z.shape[1]
    return ScoreMatrix(shape, lambda x: Z @ x, lambda x: Z.T @ x, lambda: Z)


def less_factored(Z: ScoreMatrix, left: Array, right: Array) -> ScoreMatrix:
    """Return Z - left right', known by its products: scores with a ridge term."""
    return ScoreMatrix(
        Z.shape,
        lambda x: Z.dot(x) - left @ (right.T @ x),
        lambda x: Z.transpose_dot(x) - right @ (left.T @ x),
        lambda: Z.dense() - left @ right.T,
    )


def symmetric_part(Z: ScoreMatrix, shift: float = 0.0) -> ScoreMatrix:
    """Return (Z + Z') / 2 + shift I, for a square matrix of scores."""

    def dot(x: Array) -> Array:
        return 0.5 * (Z.dot(x) + Z.transpose_dot(x)) + shift * x

    def dense() -> Array:
        stored = Z.dense()
        return 0.5 * (stored + stored.T) + shift * np.eye(Z.shape[0])

    return ScoreMatrix(Z.shape, dot, dot, dense)


def score_matrix(scores: Scores, shape: Shape) -> ScoreMatrix:
    """Return the scores as a matrix of this shape, the same one at every call.

    As they know themselves, else made of all of z: searches over it are then remembered with it.
    """
    known = cast("ScoreMatrix | None", scores.as_matrix)
    if known is None or known.shape != shape:
        known = dense_matrix(np.asarray(scores.full(), dtype=np.float64).reshape(shape))
        scores.as_matrix = known
    return known


class MatrixScores(ArrayScores):
    """z stored in full, which is a matrix (p, q) row after row."""

    def __init__(self, Z: Array) -> None:
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        super().__init__(Z.reshape(-1))
        self.as_matrix = dense_matrix(Z)
