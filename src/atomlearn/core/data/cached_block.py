"""CachedBlock: a block that remembers its Gram matrices between Newton steps and passes.

Newton steps ask again and again for A_S' D A_S and A_S diag(d) A_S' with supports and curvatures
that change little. What has not changed is not computed again: new columns extend the Gram
matrix, changed samples (squared hinge) and changed columns (k-support) update it by low rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.growing_gram import GrowingGram
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns, Deadline


@dataclass(slots=True)
class _GramCache:
    """gram = A_K' diag(curvature) A_K for the known positions K, ``where`` their inverse map."""

    known: Columns
    where: NDArray[np.int64]
    columns: Block
    curvature: Array
    gram: Array
    updates: int = 0


@dataclass(slots=True)
class _OuterCache:
    """outer = A_P A_P' for the positions P (sorted)."""

    positions: Columns
    outer: Array
    updates: int = 0


class CachedBlock(Block):
    """Wrap a block; the Gram matrices of dense and sparse ones are kept and updated.

    The products are those of the wrapped block up to rounding (about 1e-14 relative). Successors
    made by ``append`` take the caches over: use only the latest one.

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

    __slots__ = ("_gram", "_growing", "_outers", "hessian", "inner", "projected")

    def __init__(self, inner: Block) -> None:
        self.inner: Block = inner.bare
        self._gram: _GramCache | None = None
        self._growing: GrowingGram | None = None
        self._outers: dict[bool, _OuterCache] = {}
        #: What the kernel of Newton steps left behind, see ``newton_qp``.
        self.hessian = _kernels.KeptHessian()
        #: Q, D and the block with Q projected out in the metric D, see ``FreeNewton``.
        self.projected: tuple[Array, Array, CachedBlock] | None = None

    @classmethod
    def of(cls, block: Block) -> CachedBlock:
        """Return the block itself where it is cached, with what it keeps, else a cached one."""
        return block if isinstance(block, CachedBlock) else cls(block)

    @classmethod
    def with_gram(cls, block: Block, curvature: Array, gram: Array) -> CachedBlock:
        """Return the block with A' diag(curvature) A, which is known already."""
        made, at = cls(block), np.arange(gram.shape[0])
        made._gram = _GramCache(at, at.copy(), block, curvature, gram)
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

    @property
    def bare(self) -> Block:
        return self.inner

    @property
    def n_distinct(self) -> int:
        return self.inner.n_distinct

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

    def take(self, positions: Columns) -> CachedBlock:
        taken = CachedBlock(self.inner.take(positions))
        if self._growing is not None and self._growing.size == self.shape[1]:
            taken._growing = self._growing.take(positions)
        return taken

    def append(self, other: Block) -> CachedBlock:
        longer = CachedBlock(self.inner.append(other.bare))
        if longer.inner.keeps_gram and type(longer.inner) is type(self.inner):
            longer._outers = self._outers
            if (cache := self._gram) is not None:
                fresh = np.full(other.shape[1], -1, dtype=np.int64)
                cache.where = np.concatenate([cache.where, fresh])
                longer._gram = cache
        longer._growing = self._growing
        longer.hessian, self.hessian = self.hessian, _kernels.KeptHessian()
        longer.projected, self.projected = self.projected, None
        return longer

    def growing_gram(self, curvature: Array, centered: bool) -> GrowingGram:
        """Return A'CA of all columns, of A less its C-weighted means where ``centered``.

        It is kept for one ``curvature`` (the same array) and extended by what append has added.
        """
        growing = self._growing
        if (
            growing is None
            or growing.curvature is not curvature
            or growing.centered != centered
            or growing.size > self.shape[1]
        ):
            growing = GrowingGram(curvature, centered)
            self._growing = growing
        growing.extend_to(self.inner)
        return growing

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        if positions is None:
            positions = np.arange(self.shape[1], dtype=np.int64)
        if not self.inner.keeps_gram:
            return self.inner.gram(curvature, positions)
        cache = self._gram
        if cache is None or not self._bring_up_to_date(cache, curvature, positions):
            cache = self._fresh(curvature, positions)
            self._gram = cache
        self._extend(cache, positions)
        at = cache.where[positions]
        if at.size == cache.known.size and (at == np.arange(at.size)).all():
            return cache.gram.copy()
        return cache.gram[np.ix_(at, at)]

    def _fresh(self, curvature: Array, positions: Columns) -> _GramCache:
        where = np.full(self.shape[1], -1, dtype=np.int64)
        where[positions] = np.arange(positions.size)
        columns = self.inner.take(positions)
        return _GramCache(positions, where, columns, curvature, columns.gram(curvature))

    def _bring_up_to_date(self, cache: _GramCache, curvature: Array, positions: Columns) -> bool:
        """Update the cached Gram to this curvature where that is cheaper than a fresh one."""
        n_new = int(np.count_nonzero(cache.where[positions] < 0))
        if cache.known.size + n_new > 2 * positions.size + 200:
            return False
        if cache.curvature is curvature:
            return True
        difference = curvature - cache.curvature
        changed = int(np.count_nonzero(difference))
        if not changed:
            return True
        update_cost = changed * cache.known.size**2
        if (
            cache.updates >= LIMITS.most_updates
            or 2 * update_cost > curvature.size * positions.size**2
        ):
            return False
        for sign in (1.0, -1.0):
            part = np.maximum(sign * difference, 0.0)
            if part.any():
                cache.gram += sign * cache.columns.gram(part)
        cache.curvature = curvature
        cache.updates += 1
        return True

    def _extend(self, cache: _GramCache, positions: Columns) -> None:
        """Add the Gram columns of positions asked for the first time."""
        new = positions[cache.where[positions] < 0]
        if not new.size:
            return
        block = self.inner.take(new)
        size, deadline = cache.known.size, Deadline.current()
        deadline.check()
        gram = np.empty((size + new.size, size + new.size))
        gram[:size, :size] = cache.gram
        gram[:size, size:] = cache.columns.cross_gram(cache.curvature, block)
        gram[size:, :size] = gram[:size, size:].T
        deadline.check()
        gram[size:, size:] = block.gram(cache.curvature)
        cache.where[new] = size + np.arange(new.size)
        cache.known = np.concatenate([cache.known, new])
        cache.columns = cache.columns.append(block)
        cache.gram = gram

    def outer(self, diagonal: Array, positions: Columns | None = None) -> Array:
        """Return A_S diag(d) A_S'; cached where d takes at most two values (k-support, l1)."""
        if positions is None:
            positions = np.arange(self.shape[1], dtype=np.int64)
        values = np.unique(diagonal)
        values = values[values != 0]
        if not isinstance(self.inner, DenseBlock) or not 0 < values.size <= 2:
            return self.inner.outer(diagonal, positions)
        total: Array | None = None
        for value in values:
            # The two classes of a prox Jacobian: slope one, and one common smaller slope.
            part = value * self._indicator_outer(
                positions[diagonal == value], bool(value == values[-1])
            )
            total = part if total is None else total + part
        assert total is not None
        return total

    def _indicator_outer(self, positions: Columns, slot: bool) -> Array:
        positions = np.sort(positions)
        cache = self._outers.get(slot)
        if cache is not None and cache.updates < LIMITS.most_updates:
            added = np.setdiff1d(positions, cache.positions, assume_unique=True)
            removed = np.setdiff1d(cache.positions, positions, assume_unique=True)
            if 2 * (added.size + removed.size) < positions.size:
                for sign, changed in ((1.0, added), (-1.0, removed)):
                    if changed.size:
                        cache.outer += sign * self.inner.outer(np.ones(changed.size), changed)
                cache.positions = positions
                cache.updates += 1
                return cache.outer
        outer = self.inner.outer(np.ones(positions.size), positions)
        self._outers[slot] = _OuterCache(positions, outer)
        return outer
