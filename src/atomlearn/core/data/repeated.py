"""RepeatedBlock: columns of which many are the same feature, each feature stored once."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block, Columns


class RepeatedBlock(Block):
    """Column i is feature number ``features[positions[i]]``, held in ``base``.

    base : the features, each once; features : (q,) int64 their numbers in X, distinct;
    positions : (m,) int64 in 0..q-1. Overlapping groups repeat a feature as often as groups in
    use hold it; products, Gram matrices and memory are those of the q features.
    """

    __slots__ = ("base", "features", "positions")

    def __init__(self, base: Block, features: Columns, positions: Columns) -> None:
        self.base: CachedBlock = CachedBlock.of(base)
        self.features = features
        self.positions = positions

    @property
    def shape(self) -> tuple[int, int]:
        return self.base.shape[0], self.positions.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.base.dtype

    @property
    def n_distinct(self) -> int:
        return self.base.shape[1]

    def distinct(self) -> tuple[Block, Columns]:
        return self.base, self.positions

    def with_distinct(self, distinct: Block) -> RepeatedBlock:
        return RepeatedBlock(distinct, self.features, self.positions)

    def dot(self, weights: Array) -> Array:
        sums = np.bincount(self.positions, weights=weights, minlength=self.features.size)
        return self.base.dot(sums.astype(np.float64, copy=False))

    def transpose_dot(self, v: Array) -> Array:
        return self.base.transpose_dot(v)[self.positions]

    def squared_norms(self, curvature: Array | None = None) -> Array:
        return self.base.squared_norms(curvature)[self.positions]

    def dense(self) -> Array:
        return np.asfortranarray(self.base.dense()[:, self.positions])

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        chosen = self.positions if positions is None else self.positions[positions]
        used, place = np.unique(chosen, return_inverse=True)
        return self.base.gram(curvature, used)[np.ix_(place.ravel(), place.ravel())]

    def gather(self, columns: Columns) -> RepeatedBlock:
        chosen = self.positions[columns]
        used, place = np.unique(chosen, return_inverse=True)
        if used.size == self.features.size:
            return RepeatedBlock(self.base, self.features, chosen)
        return RepeatedBlock(self.base.gather(used), self.features[used], place.ravel())

    def append(self, other: Block) -> RepeatedBlock:
        if not isinstance(other, RepeatedBlock):
            raise TypeError(
                f"a block of repeated features takes one of its own kind, got "
                f"{type(other).__name__}; gather both from the same design"
            )
        if not self.positions.size:
            return other
        order = np.argsort(self.features, kind="stable")
        places = np.searchsorted(self.features, other.features, sorter=order)
        places = order[np.minimum(places, order.size - 1)] if order.size else places
        known = np.zeros(other.features.size, dtype=bool)
        if order.size:
            known = self.features[places] == other.features
        new = np.flatnonzero(~known)
        target = np.where(known, places, self.features.size - 1 + np.cumsum(~known))
        base = self.base.append(other.base.gather(new)) if new.size else self.base
        return RepeatedBlock(
            base,
            np.concatenate([self.features, other.features[new]]),
            np.concatenate([self.positions, target[other.positions]]),
        )
