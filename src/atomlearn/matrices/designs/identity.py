"""Identity: predictions are the matrix itself (denoising, robust PCA, covariance, sparse PCA)."""

from __future__ import annotations

import math

import numpy as np

from atomlearn.core import Array, Block, Columns, Scores, SparseBlock, Traits
from atomlearn.matrices.designs.base import MatrixDesign
from atomlearn.matrices.scores import MatrixScores, check_tensor_shape


class Identity(MatrixDesign):
    """The identity operator: the predictions are vec(W), with one sample per entry, row-major.

    Parameters
    ----------
    shape : (p, q), or the shape of a tensor
        A tensor (d_1, d_2, ..., d_m) is read as a matrix of shape (d_1, d_2 ... d_m).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import Identity
    >>> Identity((2, 3)).scores(np.arange(6.0)).full()
    array([0., 1., 2., 3., 4., 5.])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        """Check the shape; a tensor is read as a matrix with d_1 rows."""
        sizes = check_tensor_shape("Identity", shape)
        shape = sizes[0], math.prod(sizes[1:])
        # There are no data, so that all reads are free.
        self.traits = Traits(reads_at_once=True, matrix_shape=shape)
        self.shape = math.prod(sizes), math.prod(sizes)

    def scores(self, v: Array) -> Scores:
        """Return v as a matrix of scores (p, q): the adjoint of the identity."""
        # A copy, because the caller may change v before the scores are read.
        return MatrixScores(np.array(v, dtype=np.float64).reshape(self.matrix_shape))

    def dual_of(self, scores: Array) -> Array:
        """Return the v with the scores ``scores`` (p, q): the same numbers as a vector."""
        return scores.reshape(-1)

    def predict(self, weights: Array) -> Array:
        """Return a copy of ``weights``, since the predictions are vec(W) itself."""
        return np.array(weights, dtype=np.float64)

    def gather(self, columns: Columns) -> Block:
        """Return the columns at these numbers, which are unit vectors, as a sparse block."""
        starts = np.arange(columns.size + 1)
        return SparseBlock(np.ones(columns.size), columns, starts, self.shape[0])
