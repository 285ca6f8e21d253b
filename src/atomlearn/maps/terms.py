"""TermDesign: implicit designs with one group of columns per term (main effect, interaction)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import CodedColumns, code_histograms
from atomlearn.core import (
    LIMITS,
    Array,
    ArrayScores,
    Block,
    Columns,
    Deadline,
    DenseBlock,
    Scores,
    Traits,
    check_same_rows,
)
from atomlearn.maps.feature_map import MappedDesign, TermMap

Labels = NDArray[np.int64]


class TermDesign(MappedDesign):
    """A design whose columns are ordered by terms: inputs, or inputs and pairs of them."""

    map: TermMap

    @property
    def n_groups(self) -> int:
        """Number of terms that have columns; constant inputs have none."""
        return self.map.used.size

    @property
    def groups(self) -> Labels:
        """Group of each column, (n_columns,) int64 in 0..n_groups-1."""
        return self.map.groups

    def scores(self, v: Array) -> Scores:
        return ArrayScores(self.scores_of(v))

    traits = Traits(reads_at_once=True)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of each column of V; codes are read once."""
        return [ArrayScores(z) for z in np.ascontiguousarray(self.scores_of(V).T)]

    @abstractmethod
    def scores_of(self, v: Array) -> Array:
        """Return Phi'v, (n_columns,), or for v (n, m) its columns' scores, (n_columns, m)."""

    @abstractmethod
    def coded(self, terms: Columns) -> tuple[NDArray[Any], list[Array]]:
        """Return the codes of these terms (n_samples, m), and the table of columns of each term."""

    def gather(self, columns: Columns) -> Block:
        columns = np.asarray(columns, dtype=np.int64)
        block = self._coded_block(columns)
        widest = int(self.map.sizes.max(initial=0))
        return block if self.shape[0] * widest > LIMITS.piece_entries else DenseBlock(block.dense())

    def _coded_block(self, columns: Columns) -> CodedBlock:
        terms, part = np.unique(self.map.term_of(columns), return_inverse=True)
        place = columns - self.map.starts[terms[part.ravel()]]
        return CodedBlock(*self.coded(terms), part.ravel(), place)

    def predict(self, weights: Array) -> Array:
        """Return Phi w for a dense w, in one pass over the terms in use."""
        columns = np.flatnonzero(weights)
        result = np.zeros(self.shape[0])
        # Codes take a byte for each row and term, so that the number of terms at a time is bounded.
        step = max(1, LIMITS.piece_entries // self.shape[0])
        _, place = np.unique(self.map.term_of(columns), return_inverse=True)
        for part in np.split(columns, np.flatnonzero(np.diff(place // step)) + 1):
            result += self._coded_block(part).predict(weights[part])
        return result


class CodedBlock(Block):
    """Columns of binned inputs as table look-ups: tables[p][codes[:, p], k].

    Column c has p = part[c] and k = place[c].

    The m_p columns of an input take together one byte for each sample: products take O(n q)
    additions and O(levels) operations for each column, Gram matrices O(n q^2), compared with O(n
    (sum m)^2) for dense columns.

    Attributes
    ----------
    codes : (n, q) uint8
        Codes of q inputs, in Fortran order.
    tables : list of arrays (n_levels, m_p)
        Values of the columns of each input at each level.
    part, place : (n_columns,) int64
        Input of each column, and its column in the table.
    """

    traits = Traits(keeps_gram=True)

    def __init__(
        self, codes: NDArray[np.uint8], tables: Sequence[Array], part: Columns, place: Columns
    ) -> None:
        self.codes, self.tables, self.part, self.place = codes, list(tables), part, place
        self.shape = self.codes.shape[0], self.part.size

    def predict(self, weights: Array) -> Array:
        result = np.zeros(self.shape[0])
        for p, table, mine in self._parts():
            values = table[:, self.place[mine]] @ weights[mine]
            result += values[self.codes[:, p]]
        return result

    def scores(self, v: Array) -> Scores:
        return ArrayScores(self._summed(v, power=1))

    def _squares(self, weights: Array) -> Array:
        return self._summed(weights, power=2)

    def _summed(self, v: Array, power: int) -> Array:
        """Return sum_i v_i a_ij^power for each column j."""
        result = np.empty(self.part.size)
        starts = np.cumsum([0, *(table.shape[0] for table in self.tables)])
        codes = self.codes.ravel(order="K")
        sums = code_histograms(CodedColumns(codes, None, None, self.shape[0], starts), v)
        for p, table, mine in self._parts():
            values = table[:, self.place[mine]]
            result[mine] = (values**power).T @ sums[starts[p] : starts[p + 1]]
        return result

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        if positions is not None:
            return self.gather(positions).gram(curvature)
        rows = np.flatnonzero(curvature)
        codes = self.codes
        weights = curvature
        if 4 * rows.size <= 3 * curvature.size:
            codes = np.asfortranarray(codes[rows])
            weights = curvature[rows]
        result = np.empty((self.part.size, self.part.size))
        deadline = Deadline.current()
        parts = list(self._parts())
        for place, (p, left, mine) in enumerate(parts):
            deadline.check()
            for q, right, theirs in parts[place:]:
                shape = left.shape[0], right.shape[0]
                both = codes[:, p].astype(np.intp) * shape[1] + codes[:, q]
                joint = np.bincount(both, weights, shape[0] * shape[1]).reshape(shape)
                product = left[:, self.place[mine]].T @ joint @ right[:, self.place[theirs]]
                result[np.ix_(mine, theirs)] = product
                result[np.ix_(theirs, mine)] = product.T
        return result

    def gather(self, columns: Columns) -> CodedBlock:
        used, part = np.unique(self.part[columns], return_inverse=True)
        tables = [self.tables[p] for p in used]
        codes = self.codes if used.size == self.codes.shape[1] else self.codes[:, used]
        return CodedBlock(np.asfortranarray(codes), tables, part.ravel(), self.place[columns])

    def with_rows(self, rows: NDArray[np.int64]) -> CodedBlock:
        """Return the block of these rows, in their order; rows may repeat."""
        codes = np.asfortranarray(self.codes[rows])
        return CodedBlock(codes, self.tables, self.part, self.place)

    def append(self, other: Block) -> Block:
        check_same_rows(self, other)
        if not isinstance(other, CodedBlock):
            return DenseBlock(self.dense()).append(other)
        return CodedBlock(
            np.concatenate([self.codes.T, other.codes.T]).T,
            [*self.tables, *other.tables],
            np.concatenate([self.part, other.part + len(self.tables)]),
            np.concatenate([self.place, other.place]),
        )

    def dense(self) -> Array:
        result = np.empty(self.shape, order="F")
        for p, table, mine in self._parts():
            codes = self.codes[:, p]
            for column in mine:
                result[:, column] = table[codes, self.place[column]]
        return result

    def _parts(self) -> list[tuple[int, Array, Columns]]:
        """Return each input in use, its table, and its columns in this block."""
        order = np.argsort(self.part, kind="stable")
        ends = np.cumsum(np.bincount(self.part, minlength=len(self.tables)))
        begins = [0, *ends.tolist()]
        return [
            (p, table, order[begins[p] : begins[p + 1]])
            for p, table in enumerate(self.tables)
            if begins[p + 1] > begins[p]
        ]
