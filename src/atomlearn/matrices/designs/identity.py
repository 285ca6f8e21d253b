"""Identity: predictions are the matrix itself (denoising, robust PCA, covariance, sparse PCA)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn.core.data.blocks import SparseBlock
from atomlearn.core.interfaces import Array, Block, Columns, Deadline, Design, Scores
from atomlearn.matrices.designs.base import MatrixDesign
from atomlearn.matrices.scores import MatrixScores
from atomlearn.matrices.shapes import Shape, check_tensor_shape


class Identity(MatrixDesign):
    """X = I: the predictions are vec(W), one sample for each entry, row after row.

    Parameters
    ----------
    shape : (p, q), or the shape of a tensor
        A tensor (d_1, d_2, ..., d_m) is a matrix of shape (d_1, d_2 ... d_m) here.
    mode : int, default=0
        The columns are the entries of the unfolding along this mode of the tensor, whose entries
        in their own order are the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import Identity
    >>> Identity((2, 3)).scores(np.arange(6.0)).full()
    array([0., 1., 2., 3., 4., 5.])
    """

    def __init__(self, shape: tuple[int, ...], mode: int = 0) -> None:
        self.tensor_shape, self.mode = check_tensor_shape("Identity", shape), mode

    @property
    def matrix_shape(self) -> Shape:
        """(d_mode, product of the others)."""
        rows = self.tensor_shape[self.mode]
        return rows, self.n_samples // rows

    @property
    def n_samples(self) -> int:
        """p q: one sample for each entry."""
        return math.prod(self.tensor_shape)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_samples

    def _unfold(self, v: Array) -> Array:
        """Return the matrix (p, q) of the samples: as they are, a view, along the first mode."""
        tensor = np.moveaxis(np.reshape(v, self.tensor_shape), self.mode, 0)
        return np.ascontiguousarray(tensor).reshape(self.matrix_shape)

    def _fold(self, W: Array) -> Array:
        """Return the samples of a matrix (p, q)."""
        moved = [size for axis, size in enumerate(self.tensor_shape) if axis != self.mode]
        tensor = np.reshape(W, (self.tensor_shape[self.mode], *moved))
        return np.ascontiguousarray(np.moveaxis(tensor, 0, self.mode)).reshape(-1)

    def scores(self, v: Array) -> Scores:
        # A copy: the caller may use v again before the scores are asked.
        return MatrixScores(self._unfold(np.array(v, dtype=np.float64)))

    def passes_of_many(self, count: int) -> float:
        return float(min(count, 1))  # nothing is read but the vectors

    def predict(self, weights: Array) -> Array:
        """Return vec(W), or the tensor of the unfolding: a copy."""
        return self._fold(np.array(weights, dtype=np.float64))

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return c in the order of the columns, or ones."""
        ones = np.ones(self.n_samples)
        return ones if curvature is None else self._unfold(np.array(curvature)).reshape(-1)

    def gather(self, columns: Columns) -> Block:
        numbers: Any = np.arange(self.n_samples)
        samples = columns if self.mode == 0 else self._unfold(numbers).reshape(-1)[columns]
        starts = np.arange(columns.size + 1)
        return SparseBlock(np.ones(columns.size), samples, starts, self.n_samples)

    def predictions(self, images: Array, right: Array) -> Array:
        """Return vec(images right'), or the tensor whose unfolding it is: O(p q r)."""
        return self._fold(np.asarray(images @ right.T))

    def predictions_of_each(self, images: Array, right: Array) -> Array:
        """Return the predictions of each pair of columns, side by side."""
        Deadline.current().check()
        each = np.einsum("ir,jr->rij", images, right).reshape(images.shape[1], -1)
        places: Any = np.arange(self.n_samples)
        return np.asarray(each[:, self._fold(places)].T)

    def pulled(self, v: Array, right: Array) -> Array:
        """Return V right for V (p, q) of v."""
        return np.asarray(self._unfold(v) @ right)

    def unfolded(self, shape: tuple[int, ...], mode: int) -> Design:
        """Return the design of the entries of the mode-th unfolding, the samples unchanged."""
        if self.mode:
            raise TypeError(
                "an unfolded design is unfolded already; unfold designs.Identity(shape)"
            )
        return Identity(shape, mode)
