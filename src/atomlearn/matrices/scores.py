"""Scores as implicit matrices Z (p, q), and results of searches for rank-one atoms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from atomlearn._support import Deadline
from atomlearn.core import Array, ArrayScores, Scores
from atomlearn.matrices.settings import SETTINGS

Shape = tuple[int, int]


def check_tensor_shape(owner: str, shape: object) -> tuple[int, ...]:
    """Return ``shape`` as a tuple of two or more ints >= 1; raise ValueError otherwise.

    The error message begins with ``owner``, the name of a class.
    """
    try:
        sizes = tuple(int(size) for size in shape)  # type: ignore[attr-defined]
        exact = all(size == original for size, original in zip(sizes, shape, strict=True))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        sizes = ()
        exact = False
    if not exact or len(sizes) < 2 or min(sizes) < 1 or math.prod(sizes) >= 2**62:
        raise ValueError(
            f"{owner}: shape must be two or more whole numbers >= 1, got {shape!r}; "
            "pass the shape of the matrix such as (100, 20)"
        )
    return sizes


def agreed_shape(norm: object, of_norm: Any, of_design: Any) -> Any:
    """Return the shape of W: ``of_norm`` from the norm, or ``of_design`` from the design.

    If both are known they must agree, else ValueError is raised. The result is None if both are
    None.
    """
    if of_norm is None or of_design is None:
        return of_design if of_norm is None else of_norm
    if tuple(of_norm) != tuple(of_design):
        raise ValueError(
            f"{norm!r} is for matrices of shape {tuple(of_norm)}, and the design's matrix is of "
            f"shape {tuple(of_design)}; leave shape out"
        )
    return of_norm


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a search for the best rank-one atoms u v' of a matrix norm, best first.

    Attributes
    ----------
    left : (p, t) float64
        The vectors u_i as columns.
    right : (q, t) float64
        The vectors v_i as columns.
    values : (t,) float64
        The scores <u_i v_i', Z> = u_i'Z v_i, decreasing.
    lower, upper : float
        Bounds on the polar: lower <= gauge°(Z) <= upper. ``lower`` is the best score found (0 if no
        score is positive). ``upper`` may fail with a small probability; see the norm.
    """

    left: Array
    right: Array
    values: Array
    lower: float
    upper: float

    def above(self, level: float) -> tuple[Array, Array]:
        """Return (left, right) of the atoms whose score exceeds ``level`` beyond rounding."""
        is_above = self.values > level * (1 + SETTINGS.rounding)
        return self.left[:, is_above], self.right[:, is_above]


def both_found(first: Found, second: Found) -> Found:
    """Return the atoms of two searches, best first, with the tighter lower and upper bounds.

    ``first`` and ``second`` are the results of searches for the same scores and norm.
    """
    values = np.concatenate([first.values, second.values])
    order = np.argsort(-values, kind="stable")
    lower = max(first.lower, second.lower, float(values.max(initial=0.0)))
    return Found(
        np.hstack([first.left, second.left])[:, order],
        np.hstack([first.right, second.right])[:, order],
        values[order],
        lower,
        max(min(first.upper, second.upper), lower),
    )


def merged(left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
    """Return the same sum of atoms left diag(weights) right', orthogonalized on each support.

    left is (p, t), weights (t,) and right (q, t); the columns u of left and v of right may be
    sparse. Atoms with the same nonzero rows of u and of v are replaced by the SVD of their weighted
    sum. Its singular vectors are atoms too, and the sum of the weights does not increase. If left
    equals right, the eigendecomposition is used.
    """
    # The numbers of the atoms on each pair of supports.
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    for number, (u, v) in enumerate(zip(left.T, right.T, strict=True)):
        key = np.flatnonzero(u).tobytes(), np.flatnonzero(v).tobytes()
        groups.setdefault(key, []).append(number)
    single = [group[0] for group in groups.values() if len(group) == 1]
    sums = [(left[:, single], weights[single], right[:, single])]
    for group in groups.values():
        if len(group) == 1:
            continue
        # The weighted sum of the atoms of this group, without rows and columns of zeros.
        rows = np.flatnonzero(left[:, group[0]])
        cols = np.flatnonzero(right[:, group[0]])
        W = (left[:, group][rows] * weights[group]) @ right[:, group][cols].T
        if np.array_equal(left, right):
            values, P = np.linalg.eigh(W)
            Q = P
        else:
            P, values, Qt = np.linalg.svd(W, full_matrices=False)
            Q = Qt.T
        nonzero = np.flatnonzero(values > SETTINGS.rounding * values.max(initial=0.0))
        U = np.zeros((left.shape[0], nonzero.size))
        V = np.zeros((right.shape[0], nonzero.size))
        U[rows] = P[:, nonzero]
        V[cols] = Q[:, nonzero]
        sums.append((U, values[nonzero], V))
    lefts, all_weights, rights = zip(*sums, strict=True)
    return np.hstack(lefts), np.concatenate(all_weights), np.hstack(rights)


@dataclass(eq=False, slots=True)
class ScoreMatrix:
    """Scores as an implicit matrix Z (p, q), defined by its products with vectors.

    Attributes
    ----------
    shape : (p, q)
        Shape of Z.
    dot, transpose_dot : callable
        Return Z @ other and Z' @ other, for a vector or a matrix.
    dense : callable
        Returns Z as an array (p, q), for reading only; raises TypeError if it is too large.
    memo : dict
        Cached results of thorough searches, by the ``repr`` of the norm.
    deadline : Deadline
        Time at which searches should return their best result.
    """

    shape: Shape
    dot: Callable[[Array], Array]
    transpose_dot: Callable[[Array], Array]
    dense: Callable[[], Array]
    memo: dict[Any, Found] = field(default_factory=dict)
    deadline: Deadline = field(default_factory=Deadline)


def dense_matrix(Z: Array) -> ScoreMatrix:
    """Return the array Z (p, q) as a ``ScoreMatrix``."""
    shape = Z.shape[0], Z.shape[1]
    return ScoreMatrix(shape, lambda x: Z @ x, lambda x: Z.T @ x, lambda: Z)


def less_factored(Z: ScoreMatrix, left: Array, right: Array) -> ScoreMatrix:
    """Return Z - left right' as an implicit matrix, for left (p, r) and right (q, r).

    A ridge term subtracts a multiple of W = left right' from the scores Z.
    """
    return ScoreMatrix(
        Z.shape,
        lambda x: Z.dot(x) - left @ (right.T @ x),
        lambda x: Z.transpose_dot(x) - right @ (left.T @ x),
        lambda: Z.dense() - left @ right.T,
    )


def symmetric_block(Z: Array) -> Array:
    """Return [0 Z; Z' 0], whose eigenvalues are the singular values of Z with both signs."""
    p, q = Z.shape
    return np.block([[np.zeros((p, p)), Z], [Z.T, np.zeros((q, q))]])


def symmetric_part(Z: ScoreMatrix, shift: float = 0.0) -> ScoreMatrix:
    """Return (Z + Z') / 2 + shift I as an implicit matrix, for a square matrix of scores Z."""

    def dot(x: Array) -> Array:
        """Return the product with a vector or a matrix x; the matrix is its own transpose."""
        return 0.5 * (Z.dot(x) + Z.transpose_dot(x)) + shift * x

    def dense() -> Array:
        """Return the matrix as an array."""
        stored = Z.dense()
        return 0.5 * (stored + stored.T) + shift * np.eye(Z.shape[0])

    return ScoreMatrix(Z.shape, dot, dot, dense)


def score_matrix(scores: Scores, shape: Shape) -> ScoreMatrix:
    """Return the scores as a ``ScoreMatrix`` of this shape.

    Every call for the same scores returns the same object, which caches results of searches.
    """
    matrix = cast("ScoreMatrix | None", scores.as_matrix)
    if matrix is None or matrix.shape != shape:
        matrix = dense_matrix(np.asarray(scores.full(), dtype=np.float64).reshape(shape))
        scores.as_matrix = matrix
    return matrix


class MatrixScores(ArrayScores):
    """Scores stored as a dense array: the vector is Z (p, q) in row-major order."""

    def __init__(self, Z: Array) -> None:
        """Store Z (p, q) as a matrix and as a vector in row-major order."""
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        super().__init__(Z.reshape(-1))
        self.as_matrix = dense_matrix(Z)
