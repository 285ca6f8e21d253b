"""TermDesign: columns that come in terms, one for each curve or surface, none of them stored."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn import _kernels
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces.design import Array, Columns, Design, Scores

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
        design = self._design
        terms, place = np.unique(design.term_of(columns), return_inverse=True)
        if self._full is not None or 4 * terms.size > design.term_sizes.size:
            return self._stored().at(columns)
        z = design.scores_of(self._v, terms)
        sizes = design.term_sizes[terms]
        begins = np.cumsum(sizes) - sizes
        within = np.asarray(columns, dtype=np.int64) - design.starts[terms[place.ravel()]]
        return np.asarray(z[begins[place.ravel()] + within])

    def group_norms(self, labels: Labels, n_groups: int) -> Array:
        """Return the l2 norms over groups; where these are of whole terms, without forming z."""
        own = self._design.labels_of_terms(labels)
        if own is None:
            return self._stored().group_norms(labels, n_groups)
        if self._norms is None:
            self._norms = self._design.norms_of(self._v)
        if n_groups == own.size and np.array_equal(own, np.arange(n_groups)):
            return self._norms
        return _kernels.group_norms(self._norms, own, n_groups)


class TermDesign(Design):
    """A design whose columns stand term after term: inputs, or inputs and pairs of them.

    starts : (n_terms + 1,) the columns of term t are starts[t] .. starts[t + 1] - 1; terms without
    columns (constant inputs) are no groups.
    """

    starts: Columns

    def _set_terms(self, sizes: Columns) -> None:
        self.term_sizes: Columns = sizes
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._known: tuple[Labels, Labels | None] | None = None

    @cached_property
    def used(self) -> Columns:
        """The terms that have columns, (n_groups,)."""
        return np.flatnonzero(self.term_sizes)

    @property
    def n_groups(self) -> int:
        """Number of terms that have columns."""
        return self.used.size

    @cached_property
    def groups(self) -> Labels:
        """Group of each column, (n_columns,) int64 in 0..n_groups-1."""
        return np.repeat(np.arange(self.n_groups, dtype=np.int64), self.term_sizes[self.used])

    def term_of(self, columns: ArrayLike) -> Columns:
        """Return the number of the term that each column belongs to."""
        given = np.asarray(columns, dtype=np.int64)
        found: Columns = np.searchsorted(self.starts, given, side="right") - 1
        return found

    def labels_of_terms(self, labels: Labels) -> Labels | None:
        """Return the label of each of ``n_groups`` terms, None where a term has several.

        Looked at once an array.
        """
        if self._known is None or self._known[0] is not labels:
            own = labels[self.starts[self.used]]
            whole = np.array_equal(labels, np.repeat(own, self.term_sizes[self.used]))
            self._known = (labels, own if whole else None)
        return self._known[1]

    @abstractmethod
    def scores_of(self, v: Array, terms: Columns | None) -> Array:
        """Return Phi'v at the columns of these terms, term after term (None: of all)."""

    @abstractmethod
    def norms_of(self, v: Array) -> Array:
        """Return the l2 norm of the scores of each group, (n_groups,)."""
