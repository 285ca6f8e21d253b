"""Lifted: the design X L of a lifted norm, whose columns are gathered when they are wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomlearn.core.data.blocks import DenseBlock, SparseBlock
from atomlearn.core.data.forwarding import Derived
from atomlearn.core.data.repeated import RepeatedBlock
from atomlearn.core.interfaces import Array, Block, Columns, Design, Expansion, Scores


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

    @property
    def shape(self) -> tuple[int, int]:
        return self.design.shape[0], self.expansion.shape[1]

    @property
    def n_distinct(self) -> int:
        return self.design.shape[1]

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
        if block.is_sparse:
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
