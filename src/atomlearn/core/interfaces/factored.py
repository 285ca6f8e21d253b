"""Matrices kept as factors, W = left diag(weights) right', and the terms of a result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import Array, Columns


@dataclass(frozen=True, slots=True)
class Factored:
    """W = left diag(weights) right', kept as factors: (p + q + 1) r numbers for rank r.

    Immutable; ``toarray`` is the only method that forms W.

    Attributes
    ----------
    left : (p, r) float64
    weights : (r,) float64
    right : (q, r) float64
    """

    left: Array
    weights: Array
    right: Array
    shape: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        """Check that the factors have the same rank, and set ``shape``."""
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
        """The number of terms r, which is the rank of W if the factors are independent."""
        return int(self.weights.shape[0])

    @property
    def T(self) -> Factored:
        """The transpose, factored."""
        return Factored(self.right, self.weights, self.left)

    def dot(self, other: Array) -> Array:
        """Return W @ other for ``other`` (q,) or (q, m), in O((p + q) r) for each column."""
        inner = self.right.T @ other
        return np.asarray((self.left * self.weights) @ inner)

    def at(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> Array:
        """Return W[rows_i, cols_i] for all i, shape (len(rows),): O(r) each."""
        # A piece of the entries at a time, so that little memory is needed.
        result = np.empty(len(rows))
        scaled = self.left * self.weights
        for start in range(0, len(rows), 2**16):
            part = slice(start, start + 2**16)
            np.einsum("ij,ij->i", scaled[rows[part]], self.right[cols[part]], out=result[part])
        return result

    def toarray(self) -> Array:
        """Return W as a dense (p, q) array."""
        return np.asarray((self.left * self.weights) @ self.right.T)


@dataclass(frozen=True, slots=True)
class MatrixPart:
    """One term of a matrix fit: W is the sum of the terms of all norms of a union.

    Attributes
    ----------
    norm : object
        The norm of this term.
    factor : float
        The number by which it is multiplied.
    gauge : float
        factor * norm of the term. For rays (atoms with weights >= 0), the sum of the weights, which
        is an upper bound.
    factored : Factored, optional
        The factors of the term, or of its unfolding to a matrix for a norm of tensors.
    columns, weights : Columns, optional
        If ``factored`` is None, the nonzero entries of a term under a norm of vectors, in
        row-major order.
    tensor : tuple of int, optional
        The shape of the term if it is a tensor.
    mode : int
        The axis of the tensor that gives the rows of its unfolding.
    ahead : object
        Candidate atoms for a warm start, in the form of the solver.
    """

    norm: Any
    factor: float
    gauge: float
    factored: Factored | None = None
    columns: Columns | None = None
    weights: Array | None = None
    tensor: tuple[int, ...] | None = None
    mode: int = 0
    ahead: Any = None

    def dense(self, shape: tuple[int, ...]) -> Array:
        """Return the term as a dense array of this ``shape``, that of the matrix or tensor."""
        if self.factored is None:
            assert self.columns is not None
            dense = np.zeros(math.prod(shape))
            dense[self.columns] = self.weights
            return dense.reshape(shape)
        if self.tensor is None:
            return self.factored.toarray().reshape(shape)
        # Undo the unfolding: its rows are the axis ``mode``, its columns all other axes.
        other_sizes = [size for axis, size in enumerate(self.tensor) if axis != self.mode]
        tensor = self.factored.toarray().reshape(self.tensor[self.mode], *other_sizes)
        return np.moveaxis(tensor, 0, self.mode).reshape(shape)
