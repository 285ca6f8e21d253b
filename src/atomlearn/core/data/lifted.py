"""Lifted: the design X L of a lifted norm, whose columns are gathered when they are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from atomlearn.core.data.blocks import DenseBlock, SparseBlock
from atomlearn.core.data.cached_block import CachedBlock, distinct_columns
from atomlearn.core.data.standardized import affine_block
from atomlearn.core.interfaces import Array, Block, Columns, Design, Expansion, Scores
from atomlearn.core.interfaces.forwarding import Derived
from atomlearn.core.interfaces.scores import ArrayScores


class Lifted(Derived):
    """X L for a design X and an expansion L: one pass over X for the scores of all its columns.

    ``design`` is X, ``expansion`` is L.
    """

    def __init__(self, design: Design, expansion: Expansion) -> None:
        if expansion.shape[0] != design.shape[1]:
            raise ValueError(
                f"Lifted: the expansion is of {expansion.shape[0]} features, but the design has "
                f"{design.shape[1]} columns"
            )
        super().__init__(design)
        self.expansion = expansion
        self.shape = self.design.shape[0], self.expansion.shape[1]
        self.traits = replace(self.traits, n_distinct=self.design.shape[1])

    def scores(self, v: Array) -> Scores:
        return self.expansion.scores(self.design.scores(v))

    def scores_many(self, V: Array) -> Sequence[Scores]:
        return [self.expansion.scores(z) for z in self.design.scores_many(V)]

    def gather(self, columns: Columns) -> Block:
        at = self.expansion.touched(columns)
        block = self.design.gather(at.features)
        if self.expansion.repeats:
            return RepeatedBlock(block, at.features, at.rows)
        local = at.matrix(columns.size)
        if block.traits.is_sparse:
            return SparseBlock.of(block.stored() @ local)
        return DenseBlock(np.asfortranarray(block.dense() @ local.toarray()))

    def taken_off(self, columns: Columns) -> Array:
        at = self.expansion.touched(columns)
        taken = self.design.taken_off(at.features)
        if self.expansion.repeats:
            return taken[at.rows]
        # Features that are mixed can cancel as offsets do: their scores are added up, too.
        squares = self.design.gather(at.features).squared_norms() / self.shape[0]
        return np.asarray(abs(at.matrix(columns.size)).T @ (taken + np.sqrt(squares)))

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i (X L)_ij^2, or an upper bound where L mixes features."""
        return self.expansion.squared_norms(self.design.squared_norms(curvature))

    def predict(self, weights: Array) -> Array:
        used = np.flatnonzero(weights)
        features, values = self.expansion.apply(used, weights[used])
        dense = np.zeros(self.design.shape[1])
        dense[features] = values
        return self.design.predict(dense)


class RepeatedBlock(Block):
    """Column i is feature number ``features[positions[i]]``, held in ``base``.

    base : the features, each once; features : (q,) int64 their numbers in X, distinct;
    positions : (m,) int64 in 0..q-1. Overlapping groups repeat a feature as often as groups in
    use hold it; products, Gram matrices and memory are those of the q features.
    """

    def __init__(self, base: Block, features: Columns, positions: Columns) -> None:
        self.base: CachedBlock = CachedBlock.of(base)
        self.features = features
        self.positions = positions
        self.shape = self.base.shape[0], self.positions.size
        self.dtype = self.base.dtype
        self.traits = replace(self.traits, n_distinct=self.base.shape[1])

    def predict(self, weights: Array) -> Array:
        sums = np.bincount(self.positions, weights=weights, minlength=self.features.size)
        return self.base.predict(sums.astype(np.float64, copy=False))

    def scores(self, v: Array) -> Scores:
        return ArrayScores(self.base.scores(v).full()[self.positions])

    def _squares(self, weights: Array) -> Array:
        return self.base.squared_norms(weights)[self.positions]

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


@distinct_columns.register
def _features(block: RepeatedBlock) -> tuple[Block, Columns]:
    return block.base, block.positions


@affine_block.register
def _repeated(block: RepeatedBlock, means: Array, factors: Array) -> Block:
    each = np.zeros((2, block.features.size))
    each[:, block.positions] = means, factors
    if not np.array_equal(each[:, block.positions], (means, factors)):
        return affine_block.dispatch(Block)(block, means, factors)  # copies of a feature differ
    return RepeatedBlock(affine_block(block.base, *each), block.features, block.positions)
