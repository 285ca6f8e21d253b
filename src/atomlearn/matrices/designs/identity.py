"""Identity: predictions are the matrix itself (denoising, robust PCA, covariance, sparse PCA)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn.core.data.blocks import SparseBlock
from atomlearn.core.interfaces.design import Array, Block, Columns, Design, Scores
from atomlearn.matrices.designs.base import MatrixDesign
from atomlearn.matrices.scores import MatrixScores
from atomlearn.matrices.shapes import Shape, check_tensor_shape


class Identity(MatrixDesign):
    """X = I: the predictions are vec(W), one sample for each entry, row after row.

    Parameters
    ----------
    shape : (p, q), or the shape of a tensor
        A tensor (d_1, d_2, ..., d_m) is a matrix of shape (d_1, d_2 ... d_m) here.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import Identity
    >>> Identity((2, 3)).scores(np.arange(6.0)).full()
    array([0., 1., 2., 3., 4., 5.])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.tensor_shape = check_tensor_shape("Identity", shape)

    @property
    def matrix_shape(self) -> Shape:
        """(p, q)."""
        return self.tensor_shape[0], math.prod(self.tensor_shape[1:])

    @property
    def n_samples(self) -> int:
        """p q: one sample for each entry."""
        return math.prod(self.tensor_shape)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_samples

    def scores(self, v: Array) -> Scores:
        # A copy: the caller may use v again before the scores are asked.
        return MatrixScores(np.array(np.reshape(v, self.matrix_shape)))

    def predict(self, weights: Array) -> Array:
        """Return vec(W): a copy."""
        return np.array(weights, dtype=np.float64)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return c, or ones."""
        return np.ones(self.n_samples) if curvature is None else np.array(curvature)

    def gather(self, columns: Columns) -> Block:
        starts = np.arange(columns.size + 1)
        return SparseBlock(np.ones(columns.size), columns, starts, self.n_samples)

    def predictions(self, images: Array, right: Array) -> Array:
        """Return vec(images right'): O(p q r)."""
        return np.asarray(images @ right.T).reshape(-1)

    def pulled(self, v: Array, right: Array) -> Array:
        """Return V right for V (p, q) of v."""
        return np.asarray(np.reshape(v, self.matrix_shape) @ right)

    def unfolded(self, shape: tuple[int, ...], mode: int) -> Design:
        """Return the design of the entries of the mode-th unfolding, the samples unchanged."""
        return Unfolded(shape, mode)


class Unfolded(Identity):
    """W = a tensor unfolded along ``mode``; the samples are its entries in their own order."""

    def __init__(self, shape: tuple[int, ...], mode: int) -> None:
        super().__init__(shape)
        self.mode = mode

    @property
    def matrix_shape(self) -> Shape:
        """(d_mode, product of the others)."""
        rows = self.tensor_shape[self.mode]
        return rows, self.n_samples // rows

    def _unfold(self, v: Array) -> Array:
        tensor = np.moveaxis(np.reshape(v, self.tensor_shape), self.mode, 0)
        return np.ascontiguousarray(tensor).reshape(self.matrix_shape)

    def _fold(self, W: Array) -> Array:
        moved = [size for axis, size in enumerate(self.tensor_shape) if axis != self.mode]
        tensor = np.reshape(W, (self.tensor_shape[self.mode], *moved))
        return np.ascontiguousarray(np.moveaxis(tensor, 0, self.mode)).reshape(-1)

    def scores(self, v: Array) -> Scores:
        return MatrixScores(np.array(self._unfold(v)))

    def predict(self, weights: Array) -> Array:
        """Return the tensor of the unfolding."""
        return self._fold(weights)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return c in the order of the unfolding, or ones."""
        ones = np.ones(self.n_samples)
        return ones if curvature is None else self._unfold(curvature).reshape(-1)

    def gather(self, columns: Columns) -> Block:
        numbers: Any = np.arange(self.n_samples)
        samples = self._unfold(numbers).reshape(-1)[columns]
        starts = np.arange(columns.size + 1)
        return SparseBlock(np.ones(columns.size), samples, starts, self.n_samples)

    def predictions(self, images: Array, right: Array) -> Array:
        """Return the tensor whose unfolding is images right'."""
        return self._fold(np.asarray(images @ right.T))

    def pulled(self, v: Array, right: Array) -> Array:
        """Return V right for the unfolding V of v."""
        return np.asarray(self._unfold(v) @ right)

    def unfolded(self, shape: tuple[int, ...], mode: int) -> Design:
        raise TypeError("an unfolded design is unfolded already; unfold designs.Identity(shape)")
