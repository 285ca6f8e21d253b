"""CenteredBlock: columns with offsets subtracted; rows and multiples of any block."""

from __future__ import annotations

import numpy as np

from atomlearn.core.data.blocks import DenseBlock, SparseBlock
from atomlearn.core.interfaces import Array, Block, Columns, Rows, Scores
from atomlearn.core.interfaces.scores import ArrayScores


class CenteredBlock(Block):
    """A - 1 o': sparse columns with the offset o_j subtracted from each row, never made dense.

    Digits cancel in ``gram`` and ``squared_norms`` only where a column's offset is large against
    its spread, which columns that are mostly zeros cannot have.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.centered import CenteredBlock
    >>> from atomlearn.interfaces import SparseBlock
    >>> A = SparseBlock.of(np.array([[2.0], [0.0]]))
    >>> CenteredBlock(A, np.array([1.0])).dense()
    array([[ 1.],
           [-1.]])
    """

    def __init__(self, inner: Block, offsets: Array) -> None:
        self._inner = inner
        self._offsets = np.asarray(offsets, dtype=np.float64)
        self.shape = self._inner.shape
        self.dtype = self._offsets.dtype

    def dense(self) -> Array:
        """Return the block as a dense array (n_samples, n_columns)."""
        return np.asfortranarray(self._inner.dense() - self._offsets)

    def predict(self, weights: Array) -> Array:
        """Return A w for the columns A of the block."""
        return self._inner.predict(weights) - self._offsets @ weights

    def scores(self, v: Array) -> Scores:
        """Return (A - 1 o')'v = A'v - o sum(v)."""
        return ArrayScores(self._inner.scores(v).full() - self._offsets * float(v.sum()))

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A'CA - o b' - b o' for c = ``curvature``, C = diag(c), b = A'c - (sum c / 2) o."""
        pull = self._pull(curvature)
        offsets = self._offsets
        if positions is not None:
            pull = pull[positions]
            offsets = offsets[positions]
        result = self._inner.gram(curvature, positions)
        result -= np.outer(offsets, pull) + np.outer(pull, offsets)
        return result

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i (a_ij - o_j)^2 of each column j, w = ``weights``, at least 0."""
        squares = self._inner.squared_norms(weights)
        squares -= 2.0 * self._offsets * self._pull(weights)
        return np.maximum(squares, 0.0)

    def _pull(self, curvature: Array) -> Array:
        """Return b = A'c - (sum(c) / 2) o, c = ``curvature``, as in ``gram``."""
        half = 0.5 * float(curvature.sum())
        return self._inner.scores(curvature).full() - half * self._offsets

    def gather(self, columns: Columns) -> CenteredBlock:
        """Return the block of these columns."""
        return CenteredBlock(self._inner.gather(columns), self._offsets[columns])

    def append(self, other: Block) -> CenteredBlock:
        """Return the columns of both blocks, each with its offset; offsets of others are 0."""
        inner = other
        offsets = np.zeros(other.shape[1])
        if isinstance(other, CenteredBlock):
            inner = other._inner
            offsets = other._offsets
        return CenteredBlock(self._inner.append(inner), np.concatenate([self._offsets, offsets]))


def chosen_rows(block: Block, rows: Rows) -> Block:
    """Return the block restricted to these rows, by the method of the block if it has one."""
    chosen = block.with_rows(rows)
    if chosen is not None:
        return chosen
    if block.traits.is_sparse:
        return SparseBlock.of(block.stored()[rows])
    return DenseBlock(block.dense()[rows])
