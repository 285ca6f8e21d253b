"""Lifted: the design X L of a lifted norm; its columns are gathered when they are needed."""

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

    A lifted norm is a simpler norm over more columns, such as a copy of a feature for each group
    that has it. L maps the coefficients of these columns to those of the features. ``design`` is X
    (n_samples, n_features), ``expansion`` is L (n_features, n_columns).
    """

    def __init__(self, design: Design, expansion: Expansion) -> None:
        """Store X and L; raise ValueError if their numbers of features differ."""
        if expansion.shape[0] != design.shape[1]:
            raise ValueError(
                f"Lifted: the expansion is of {expansion.shape[0]} features, but the design has "
                f"{design.shape[1]} columns"
            )
        super().__init__(design)
        self.expansion = expansion
        self.shape = self.design.shape[0], self.expansion.shape[1]
        self.traits = replace(self.traits, n_distinct=self.design.shape[1])

    @property
    def searched(self) -> tuple[float, float]:
        """The work of searches for columns so far, and the work of searches without bounds.

        They add the searches of X and of the tree ``expansion.nested``, if the lifted norm has
        nested sets. The units are those of ``Design.searched``.
        """
        done, possible = self.design.searched
        nested = self.expansion.nested
        if nested is None:
            return done, possible
        return done + nested.work.columns, possible + nested.work.possible

    def scores(self, v: Array) -> Scores:
        """Return the scores (X L)'v = L'(X'v) of all columns of X L, for v (n_samples,)."""
        return self.expansion.scores(self.design.scores(v))

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores (X L)'v for each column v of V (n_samples, m)."""
        return [self.expansion.scores(z) for z in self.design.scores_many(V)]

    def gather(self, columns: Columns) -> Block:
        """Return the columns of X L with these numbers, as a block.

        If each column of L has one entry of 1, features are stored once and repeated.
        """
        touched = self.expansion.touched(columns)
        block = self.design.gather(touched.features)
        if self.expansion.repeats:
            return RepeatedBlock(block, touched.features, touched.rows)
        matrix = touched.matrix(columns.size)  # L for these features and columns
        if block.traits.is_sparse:
            return SparseBlock.of(block.stored() @ matrix)
        return DenseBlock(np.asfortranarray(block.dense() @ matrix.toarray()))

    def subtracted_offsets(self, columns: Columns) -> Array:
        """Return bounds on the offsets that are subtracted from scores of columns of X L.

        For a standardized X the scores x_j'v, once summed, lose mean_j sum(v), and the offset is
        mean_j. So offsets are in the units of the columns. The result is (len(columns),); scores
        lose digits in proportion to it.
        """
        touched = self.expansion.touched(columns)
        shifts = self.design.subtracted_offsets(touched.features)
        if self.expansion.repeats:  # each column is a copy of one feature
            return shifts[touched.rows]
        # If a column of L has several entries, scores of features are added, and may cancel, too.
        # For bounds on rounding, a feature with the root mean square r has the length sqrt(n) r,
        # and an offset m adds sqrt(n) m. So r counts like an offset.
        squares = self.design.gather(touched.features).squared_norms() / self.shape[0]
        return np.asarray(abs(touched.matrix(columns.size)).T @ (shifts + np.sqrt(squares)))

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i (X L)_ij^2 of each column j, for c = ``curvature`` (None: ones).

        It is an upper bound if a column of L has several entries.
        """
        return self.expansion.squared_norms(self.design.squared_norms(curvature))

    def predict(self, weights: Array) -> Array:
        """Return X L u, (n_samples,), for u = ``weights``, one for each column of X L."""
        support = np.flatnonzero(weights)
        features, values = self.expansion.apply(support, weights[support])
        dense = np.zeros(self.design.shape[1])
        dense[features] = values
        return self.design.predict(dense)


class RepeatedBlock(Block):
    """A block in which features repeat: column i is a copy of column ``positions[i]`` of ``base``.

    Overlapping groups repeat a feature for each group that has it. Products, Gram matrices and
    memory grow only with the q distinct features.

    Attributes
    ----------
    base
        The features, each once.
    features : (q,) int64
        Their numbers in X, distinct.
    positions : (m,) int64
        The position in ``base`` of the feature of each of the m columns, in 0..q-1.
    """

    def __init__(self, base: Block, features: Columns, positions: Columns) -> None:
        """Store the features, with a cached Gram matrix, and the feature of each column."""
        self.base: CachedBlock = CachedBlock.of(base)
        self.features = features
        self.positions = positions
        self.shape = self.base.shape[0], self.positions.size
        self.dtype = self.base.dtype
        self.traits = replace(self.traits, n_distinct=self.base.shape[1])

    def predict(self, weights: Array) -> Array:
        """Return A w, (n_samples,), for w = ``weights`` and the columns A of the block.

        The weights of all copies of a feature are added first.
        """
        sums = np.bincount(self.positions, weights=weights, minlength=self.features.size)
        return self.base.predict(sums.astype(np.float64, copy=False))

    def scores(self, v: Array) -> Scores:
        """Return A'v for v (n_samples,) and the columns A of the block."""
        return ArrayScores(self.base.scores(v).full()[self.positions])

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights`` (n_samples,)."""
        return self.base.squared_norms(weights)[self.positions]

    def dense(self) -> Array:
        """Return the block as a dense array (n_samples, n_columns)."""
        return np.asfortranarray(self.base.dense()[:, self.positions])

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S, S = ``positions`` (None: all columns).

        It is computed once for each pair of distinct features.
        """
        chosen = self.positions if positions is None else self.positions[positions]
        distinct, inverse = np.unique(chosen, return_inverse=True)
        return self.base.gram(curvature, distinct)[np.ix_(inverse.ravel(), inverse.ravel())]

    def gather(self, columns: Columns) -> RepeatedBlock:
        """Return the columns at these positions; features without a column are dropped."""
        chosen = self.positions[columns]
        distinct, inverse = np.unique(chosen, return_inverse=True)
        if distinct.size == self.features.size:
            return RepeatedBlock(self.base, self.features, chosen)
        return RepeatedBlock(self.base.gather(distinct), self.features[distinct], inverse.ravel())

    def append(self, other: Block) -> RepeatedBlock:
        """Return the columns of both blocks; a feature that both have is stored once.

        Raises TypeError unless ``other`` is a RepeatedBlock.
        """
        if not isinstance(other, RepeatedBlock):
            raise TypeError(
                f"a block of repeated features takes one of its own kind, got "
                f"{type(other).__name__}; gather both from the same design"
            )
        if not self.positions.size:
            return other
        # The position here of each feature of the other block, if it is present.
        order = np.argsort(self.features, kind="stable")
        positions = np.searchsorted(self.features, other.features, sorter=order)
        positions = order[np.minimum(positions, order.size - 1)] if order.size else positions
        is_present = np.zeros(other.features.size, dtype=bool)
        if order.size:
            is_present = self.features[positions] == other.features
        # Features that are not present are appended, and get the next positions.
        new = np.flatnonzero(~is_present)
        target = np.where(is_present, positions, self.features.size - 1 + np.cumsum(~is_present))
        base = self.base.append(other.base.gather(new)) if new.size else self.base
        return RepeatedBlock(
            base,
            np.concatenate([self.features, other.features[new]]),
            np.concatenate([self.positions, target[other.positions]]),
        )


@distinct_columns.register
def _distinct_repeated(block: RepeatedBlock) -> tuple[Block, Columns]:
    """Return the distinct features of a block, and the position among them of each column."""
    return block.base, block.positions


@affine_block.register
def _affine_repeated(block: RepeatedBlock, means: Array, factors: Array) -> Block:
    """Return the block with columns (x_j - means_j) factors_j; copies of a feature stay shared.

    means, factors : (n_columns,). If two copies of a feature have different means or factors, the
    result is a dense block.
    """
    # Two rows: the mean and the factor of each feature, read from one of its copies.
    by_feature = np.zeros((2, block.features.size))
    by_feature[:, block.positions] = means, factors
    if not np.array_equal(by_feature[:, block.positions], (means, factors)):
        return affine_block.dispatch(Block)(block, means, factors)
    return RepeatedBlock(affine_block(block.base, *by_feature), block.features, block.positions)
