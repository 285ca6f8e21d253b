"""CenteredBlock: columns with offsets subtracted; and some rows of any block."""

from __future__ import annotations

import numpy as np

from atomlearn.core.data.blocks import DenseBlock, SparseBlock
from atomlearn.core.interfaces import Array, Block, Columns, Rows, Scores
from atomlearn.core.interfaces.scores import ArrayScores


class CenteredBlock(Block):
    """A - 1 o': sparse columns with the offset o_j subtracted from column j, never made dense.

    inner : the block A; offsets : o (n_columns,). Digits cancel in ``gram`` and ``squared_norms``
    only if the offset of a column is much larger than its standard deviation. This is impossible
    for the mean of a column that is mostly zeros.

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
        """Store the block and the offset of each of its columns."""
        self.inner = inner
        self.offsets = np.asarray(offsets, dtype=np.float64)
        self.shape = self.inner.shape
        self.dtype = self.offsets.dtype

    def dense(self) -> Array:
        """Return the block as a dense array (n_samples, n_columns)."""
        return np.asfortranarray(self.inner.dense() - self.offsets)

    def predict(self, weights: Array) -> Array:
        """Return (A - 1 o') w = A w - o'w, (n_samples,), for w = ``weights``."""
        return self.inner.predict(weights) - self.offsets @ weights

    def scores(self, v: Array) -> Scores:
        """Return (A - 1 o')'v = A'v - o sum(v), for v (n_samples,)."""
        return ArrayScores(self.inner.scores(v).full() - self.offsets * float(v.sum()))

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return (A - 1 o')'C(A - 1 o') = A'CA - o b' - b o' with C = diag(c), c = ``curvature``.

        b = A'c - (sum(c) / 2) o. With S = ``positions``, only these columns are used.
        """
        cross_terms = self._cross_terms(curvature)
        offsets = self.offsets
        if positions is not None:
            cross_terms = cross_terms[positions]
            offsets = offsets[positions]
        result = self.inner.gram(curvature, positions)
        result -= np.outer(offsets, cross_terms) + np.outer(cross_terms, offsets)
        return result

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i (a_ij - o_j)^2 of each column j, at least 0, for w = ``weights``."""
        squares = self.inner.squared_norms(weights)
        squares -= 2.0 * self.offsets * self._cross_terms(weights)
        return np.maximum(squares, 0.0)

    def _cross_terms(self, curvature: Array) -> Array:
        """Return b = A'c - (sum(c) / 2) o of ``gram``, (n_columns,), for c = ``curvature``."""
        half = 0.5 * float(curvature.sum())
        return self.inner.scores(curvature).full() - half * self.offsets

    def gather(self, columns: Columns) -> CenteredBlock:
        """Return the block of the columns with these numbers."""
        return CenteredBlock(self.inner.gather(columns), self.offsets[columns])

    def append(self, other: Block) -> CenteredBlock:
        """Return the columns of both blocks, each with its offset; 0 for other kinds of blocks."""
        inner = other
        offsets = np.zeros(other.shape[1])
        if isinstance(other, CenteredBlock):
            inner = other.inner
            offsets = other.offsets
        return CenteredBlock(self.inner.append(inner), np.concatenate([self.offsets, offsets]))


def chosen_rows(block: Block, rows: Rows) -> Block:
    """Return the block restricted to ``rows``, in their order.

    A block that has a method for it uses it; others are sparse or dense arrays.
    """
    chosen = block.with_rows(rows)
    if chosen is not None:
        return chosen
    if block.traits.is_sparse:
        return SparseBlock.of(block.stored()[rows])
    return DenseBlock(block.dense()[rows])
