"""Complement: what is left of a vector beside a few directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Block, Columns, Design, Scores


class Complement(Design):
    """I - V V' for orthonormal V (p, r): the projection off the span of V, never stored.

    Products cost O(p r). Robust coordinates in a known subspace are an l1 problem over it.

    Parameters
    ----------
    V : (p, r) array with orthonormal columns

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import Complement
    >>> Complement(np.array([[1.0], [0.0]])).predict(np.array([3.0, 4.0]))
    array([0., 4.])
    """

    def __init__(self, V: Array) -> None:
        self.V = np.asarray(V, dtype=np.float64)
        if self.V.ndim != 2 or not np.allclose(self.V.T @ self.V, np.eye(self.V.shape[1])):
            raise ValueError(
                "Complement: V must have orthonormal columns, shape (p, r); use np.linalg.qr(V)[0]"
            )

    @property
    def shape(self) -> tuple[int, int]:
        return self.V.shape[0], self.V.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def product(self, W: Array) -> Array:
        """Return (I - V V') W for W (p,) or (p, t)."""
        return np.asarray(W - self.V @ (self.V.T @ W))

    def scores(self, v: Array) -> Scores:
        return ArrayScores(self.product(v))

    reads_at_once = True

    def scores_many(self, V: Array) -> Sequence[Scores]:
        return [ArrayScores(z) for z in np.ascontiguousarray(self.product(V).T)]

    def predict(self, weights: Array) -> Array:
        """Return (I - V V') w."""
        return self.product(weights)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return the squared norms of the columns, weighted by ``curvature`` (p,)."""
        if curvature is None:
            return np.asarray(1.0 - np.square(self.V).sum(axis=1)).clip(0.0)
        weighted = self.V * curvature[:, None]
        squares = curvature - 2.0 * (weighted * self.V).sum(axis=1)
        squares += ((self.V @ (self.V.T @ weighted)) * self.V).sum(axis=1)
        return np.asarray(squares).clip(0.0)

    def gather(self, columns: Columns) -> Block:
        block = -self.V @ self.V[columns].T
        block[columns, np.arange(columns.size)] += 1.0
        return DenseBlock(np.asfortranarray(block))
