"""TermDesign: columns that come in terms, one for each curve or surface, none of them stored."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Block, Columns, Deadline, Scores, TimeIsUp
from atomlearn.maps.coded_block import CodedBlock
from atomlearn.maps.feature_map import MappedDesign, TermMap

Labels = NDArray[np.int64]


class TermDesign(MappedDesign):
    """A design whose columns stand term after term: inputs, or inputs and pairs of them."""

    map: TermMap

    @property
    def n_groups(self) -> int:
        """Number of terms that have columns; constant inputs have none and are no groups."""
        return self.map.used.size

    @property
    def groups(self) -> Labels:
        """Group of each column, (n_columns,) int64 in 0..n_groups-1."""
        return self.map.groups

    def scores(self, v: Array) -> Scores:
        return ArrayScores(self.scores_of(v)) if self.map.read else self._unknown()

    def _unknown(self) -> Scores:
        """Return scores so large that a gap proves no more than that losses are not below 0."""
        return ArrayScores(np.full(self.shape[1], 1e100))

    reads_at_once = True

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of each column of V: codes are read once."""
        if not self.map.read:
            return [self._unknown()] * V.shape[1]
        return [ArrayScores(z) for z in np.ascontiguousarray(self.scores_of(V).T)]

    @abstractmethod
    def scores_of(self, v: Array) -> Array:
        """Return Phi'v, (n_columns,); of v (n, m) that of each column of it, (n_columns, m)."""

    @abstractmethod
    def coded(self, terms: Columns) -> tuple[NDArray[Any], list[Array]]:
        """Return codes of these terms (n_samples, m), and what the columns are at each code."""

    def gather(self, columns: Columns) -> Block:
        columns = np.asarray(columns, dtype=np.int64)
        if not self.map.read and Deadline.current().left < np.inf:
            raise TimeIsUp  # a step would select what was not read
        block = self._coded_block(columns)
        widest = int(self.map.sizes.max(initial=0))
        return block if self.shape[0] * widest > LIMITS.piece_entries else DenseBlock(block.dense())

    def _coded_block(self, columns: Columns) -> CodedBlock:
        terms, part = np.unique(self.map.term_of(columns), return_inverse=True)
        place = columns - self.map.starts[terms[part.ravel()]]
        return CodedBlock(*self.coded(terms), part.ravel(), place)

    def predict(self, weights: Array) -> Array:
        """Return Phi w for a dense w: one pass over the terms in use."""
        columns, result = np.flatnonzero(weights), np.zeros(self.shape[0])
        # A byte a row and term: a bounded number of terms at a time.
        step = max(1, LIMITS.piece_entries // self.shape[0])
        _, place = np.unique(self.map.term_of(columns), return_inverse=True)
        for part in np.split(columns, np.flatnonzero(np.diff(place // step)) + 1):
            result += self._coded_block(part).dot(weights[part])
        return result
