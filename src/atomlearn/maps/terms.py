"""TermDesign: columns that come in terms, one for each curve or surface, none of them stored."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Block, Columns, Deadline, Scores, TimeIsUp
from atomlearn.core.interfaces.scores import norms_by_label
from atomlearn.maps.coded_block import CodedBlock
from atomlearn.maps.feature_map import MappedDesign, TermMap

Labels = NDArray[np.int64]


class TermScores(Scores):
    """z = Phi'v, term by term where it is asked for: the norms of groups come without z itself."""

    __slots__ = ("_design", "_full", "_norms", "_v")

    def __init__(self, design: TermDesign, v: Array) -> None:
        self._design = design
        self._v = np.array(v, dtype=np.float64)
        self._full: ArrayScores | None = None
        self._norms: Array | None = None

    @property
    def n_columns(self) -> int:
        return self._design.shape[1]

    def full(self) -> Array:
        """Return all of z, shape (n_columns,): once."""
        return self._stored().full()

    def _stored(self) -> ArrayScores:
        if self._full is None:
            self._full = ArrayScores(self._design.scores_of(self._v, None))
        return self._full

    def top(self, count: int) -> tuple[Columns, Array]:
        return self._stored().top(count)

    def at(self, columns: Columns) -> Array:
        design, map = self._design, self._design.map
        terms, place = np.unique(map.term_of(columns), return_inverse=True)
        if self._full is not None or 4 * terms.size > map.n_terms:
            return self._stored().at(columns)
        z = design.scores_of(self._v, terms)
        sizes = map.sizes[terms]
        begins = np.cumsum(sizes) - sizes
        within = np.asarray(columns, dtype=np.int64) - map.starts[terms[place.ravel()]]
        return np.asarray(z[begins[place.ravel()] + within])

    def group_norms(self, labels: Labels, n_groups: int) -> Array:
        """Return the l2 norms over groups; where these are of whole terms, without forming z."""
        own = self._design.labels_of_terms(labels)
        if own is None:
            return self._stored().group_norms(labels, n_groups)
        if self._norms is None:
            self._norms = self._design.norms_of(self._v)
        return norms_by_label(self._norms, own, n_groups)


class TermDesign(MappedDesign):
    """A design whose columns stand term after term: inputs, or inputs and pairs of them."""

    map: TermMap

    @property
    def starts(self) -> Columns:
        """The columns of term t are starts[t] .. starts[t + 1] - 1, (n_terms + 1,)."""
        return self.map.starts

    @property
    def used(self) -> Columns:
        """The terms that have columns, (n_groups,)."""
        return self.map.used

    @property
    def n_groups(self) -> int:
        """Number of terms that have columns; constant inputs have none and are no groups."""
        return self.map.used.size

    @property
    def groups(self) -> Labels:
        """Group of each column, (n_columns,) int64 in 0..n_groups-1."""
        return self.map.groups

    def term_of(self, columns: ArrayLike) -> Columns:
        """Return the number of the term that each column belongs to."""
        return self.map.term_of(columns)

    def labels_of_terms(self, labels: Labels) -> Labels | None:
        """Return the label of each of ``n_groups`` terms, None where a term has several."""
        own = labels[self.starts[self.used]]
        whole = np.array_equal(labels, np.repeat(own, self.map.sizes[self.used]))
        return own if whole else None

    def scores(self, v: Array) -> Scores:
        return TermScores(self, v) if self.map.read else self._unknown()

    def _unknown(self) -> Scores:
        """Return scores so large that a gap proves no more than that losses are not below 0."""
        return ArrayScores(np.full(self.shape[1], 1e100))

    reads_at_once = True

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of each column of V: codes are read once."""
        if not self.map.read:
            return [self._unknown()] * V.shape[1]
        return [ArrayScores(z) for z in np.ascontiguousarray(self.scores_of(V, None).T)]

    @abstractmethod
    def scores_of(self, v: Array, terms: Columns | None) -> Array:
        """Return Phi'v at the columns of these terms, term after term (None: of all).

        Of v (n, m) those of each column of it, (n_columns, m).
        """

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
        terms, part = np.unique(self.term_of(columns), return_inverse=True)
        place = columns - self.starts[terms[part.ravel()]]
        return CodedBlock(*self.coded(terms), part.ravel(), place)

    def predict(self, weights: Array) -> Array:
        """Return Phi w for a dense w: one pass over the terms in use."""
        columns, result = np.flatnonzero(weights), np.zeros(self.shape[0])
        # A byte a row and term: a bounded number of terms at a time.
        step = max(1, LIMITS.piece_entries // self.shape[0])
        _, place = np.unique(self.term_of(columns), return_inverse=True)
        for part in np.split(columns, np.flatnonzero(np.diff(place // step)) + 1):
            result += self._coded_block(part).dot(weights[part])
        return result

    @abstractmethod
    def norms_of(self, v: Array) -> Array:
        """Return the l2 norm of the scores of each group, (n_groups,)."""

    def curve(self, j: int, weights: Array) -> tuple[Array, Array]:
        """Return the levels of input j and the curve f_j at them.

        ``weights`` : the coefficients of all columns, (n_columns,), or of those of input j only.
        """
        return self.map.curve(j, weights)
