"""CachedBlock: a block that keeps what the next master, of the same columns and more, can use."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn import _kernels
from atomlearn.core.data.forwarding import forward_the_rest
from atomlearn.core.data.growing_gram import GrowingGram
from atomlearn.core.interfaces import Array, Block, Columns, Design


class CachedBlock(Block):
    """Wrap a block; its Gram matrix for one curvature is kept and extended by new columns.

    Successors made by ``append`` take over what is kept: use only the latest one.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.cached_block import CachedBlock
    >>> from atomlearn.designs import DenseBlock
    >>> A = CachedBlock(DenseBlock(np.eye(2))).append(DenseBlock(np.ones((2, 1))))
    >>> A.gram(np.ones(2), np.array([0, 2]))
    array([[1., 1.],
           [1., 2.]])
    """

    __slots__ = ("_growing", "hessian", "inner")

    def __init__(self, inner: Block) -> None:
        self.inner: Block = inner.inner if isinstance(inner, CachedBlock) else inner
        self._growing: GrowingGram | None = None
        #: What the kernel of Newton steps left behind, see ``newton_qp``.
        self.hessian = _kernels.KeptHessian()

    @classmethod
    def of(cls, block: Block) -> CachedBlock:
        """Return the block itself where it is cached, with what it keeps, else a cached one."""
        return block if isinstance(block, CachedBlock) else cls(block)

    @classmethod
    def with_gram(cls, block: Block, curvature: Array, gram: Array) -> CachedBlock:
        """Return the block with A' diag(curvature) A, which is known already."""
        made = cls(block)
        made._growing = GrowingGram.known(curvature, gram)
        return made

    def knows_gram(self, curvature: Array) -> bool:
        """Return whether A'CA of all columns is there, for this very array."""
        held = self._growing
        return held is not None and held.curvature is curvature and held.size == self.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype

    def distinct(self) -> tuple[Block, Columns]:
        base, positions = self.inner.distinct()
        return (self if base is self.inner else base), positions

    def dot(self, weights: Array) -> Array:
        return self.inner.dot(weights)

    def transpose_dot(self, v: Array) -> Array:
        return self.inner.transpose_dot(v)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        return self.inner.squared_norms(curvature)

    def dense(self) -> Array:
        return self.inner.dense()

    def gather(self, columns: Columns) -> CachedBlock:
        taken = CachedBlock(self.inner.gather(columns))
        if self._growing is not None and self._growing.size == self.shape[1]:
            taken._growing = self._growing.take(columns)
        return taken

    def append(self, other: Block) -> CachedBlock:
        return self.grown(self.inner.append(CachedBlock.of(other).inner))

    def grown(self, block: Block) -> CachedBlock:
        """Return a block that begins with these columns, with what is kept of them."""
        longer = CachedBlock(block)
        longer._growing = self._growing
        longer.hessian, self.hessian = self.hessian, _kernels.KeptHessian()
        return longer

    def growing_gram(
        self, curvature: Array, centered: bool, basis: Array | None = None
    ) -> GrowingGram:
        """Return A'CA of all columns, of A less its C-weighted means where ``centered``.

        With a ``basis``, of what that leaves of A in the metric C.

        It is kept for one ``curvature`` (the same array) and extended by what append has added.
        """
        growing = self._growing
        if (
            growing is None
            or growing.curvature is not curvature
            or growing.centered != centered
            or growing.basis is not basis
            or growing.size > self.shape[1]
        ):
            growing = GrowingGram(curvature, centered, basis)
            self._growing = growing
        growing.extend_to(self.inner)
        return growing

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        held = self._growing
        if held is None or held.centered or held.basis is not None or held.size < self.shape[1]:
            return self.inner.gram(curvature, positions)
        if not np.array_equal(held.curvature, curvature):
            return self.inner.gram(curvature, positions)
        known = held.matrix
        return known.copy() if positions is None else known[np.ix_(positions, positions)]


forward_the_rest(CachedBlock, Block, Design)
