"""TermDesign: implicit designs with one group of columns per term (main effect, interaction)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import CodedColumns, code_histograms
from atomlearn._support import Deadline, spread_rows
from atomlearn.core import (
    LIMITS,
    Array,
    ArrayScores,
    Block,
    Columns,
    DenseBlock,
    Rows,
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
        """Return the scores X'v of all columns."""
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
        """Return the codes of m terms (n_samples, m), and the table of each term.

        A code is the number of a level of the term. The table (n_levels, number of columns) has the
        values of its columns at each level.
        """

    def gather(self, columns: Columns) -> Block:
        """Return the columns as a ``CodedBlock``, or as a dense block if that is small."""
        columns = np.asarray(columns, dtype=np.int64)
        block = self._coded_block(columns)
        widest = int(self.map.sizes.max(initial=0))
        return block if self.shape[0] * widest > LIMITS.piece_entries else DenseBlock(block.dense())

    def _coded_block(self, columns: Columns) -> CodedBlock:
        """Return the columns as a ``CodedBlock`` over the terms that contain them."""
        terms, position = np.unique(self.map.term_of(columns), return_inverse=True)
        # The number of each column within its term.
        within = columns - self.map.starts[terms[position.ravel()]]
        return CodedBlock(*self.coded(terms), position.ravel(), within)

    def predict(self, weights: Array) -> Array:
        """Return Phi w for ``weights`` w (n_columns,), in one pass over the terms in use."""
        columns = np.flatnonzero(weights)
        result = np.zeros(self.shape[0])
        # Codes take a byte for each row and term, so that the number of terms at a time is bounded.
        step = max(1, LIMITS.piece_entries // self.shape[0])
        _, term_rank = np.unique(self.map.term_of(columns), return_inverse=True)
        # A chunk has the columns of ``step`` consecutive terms.
        for chunk in np.split(columns, np.flatnonzero(np.diff(term_rank // step)) + 1):
            result += self._coded_block(chunk).predict(weights[chunk])
        return result

    def with_rows(self, rows: Rows) -> TermRows:
        """Return the design of these ``rows`` with the same map, without copying the codes."""
        return TermRows(self, rows)


class TermRows(TermDesign):
    """Some rows of a ``TermDesign``, with the same map: scores take a pass over all its rows."""

    def __init__(self, design: TermDesign, rows: Rows) -> None:
        """Store the design and the numbers ``rows``, which have been checked."""
        self.design = design
        self.rows = rows
        self.map = design.map
        self._names = design._names
        self.dtype = design.dtype
        self.shape = rows.size, design.shape[1]

    def scores_of(self, v: Array) -> Array:
        """Return Phi'v for v (n_rows,) or (n_rows, m)."""
        return self.design.scores_of(spread_rows(v, self.rows, self.design.shape[0]))

    def coded(self, terms: Columns) -> tuple[NDArray[Any], list[Array]]:
        """Return the codes of m terms at these rows, and the table of each term."""
        codes, tables = self.design.coded(terms)
        return np.asfortranarray(codes[self.rows]), tables

    def with_rows(self, rows: Rows) -> TermRows:
        """Return the design of these ``rows`` of this design."""
        return TermRows(self.design, self.rows[rows])

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i phi_ij^2 of each column j, for w = ``weights`` (n_rows,)."""
        return self.design.squared_norms(spread_rows(weights, self.rows, self.design.shape[0]))


class CodedBlock(Block):
    """Columns of binned inputs as table look-ups: column c is tables[p][codes[:, p], k].

    Here p = part[c] is the number of its input and k = place[c] its column in the table of p. An
    input may also be a pair of inputs, with a code for each pair of levels.

    All m_p columns of an input p together take one byte for each sample. Products take O(n q)
    additions, and O(levels) operations for each column. Gram matrices take O(n q^2) operations,
    compared with O(n (sum m)^2) for dense columns.

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
        """Store the codes, the tables, and the input and table column of each column."""
        self.codes = codes
        self.tables = list(tables)
        self.part = part
        self.place = place
        self.shape = self.codes.shape[0], self.part.size

    def predict(self, weights: Array) -> Array:
        """Return A w for ``weights`` w (n_columns,).

        The function of each input is computed at its levels, and looked up by the codes.
        """
        result = np.zeros(self.shape[0])
        for p, table, members in self._inputs_in_use():
            values = table[:, self.place[members]] @ weights[members]
            result += values[self.codes[:, p]]
        return result

    def scores(self, v: Array) -> Scores:
        """Return A'v for the columns A of the block."""
        return ArrayScores(self._summed(v, power=1))

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i a_ij^2 of each column j, for w = ``weights`` (n_samples,)."""
        return self._summed(weights, power=2)

    def _summed(self, v: Array, power: int) -> Array:
        """Return sum_i v_i a_ij^power for each column j, from the sums of v over each level."""
        # ``sums`` has the sum of v over the rows of each level, input after input.
        result = np.empty(self.part.size)
        starts = np.cumsum([0, *(table.shape[0] for table in self.tables)])
        codes = self.codes.ravel(order="K")
        dense = CodedColumns(codes, indices=None, indptr=None, n_rows=self.shape[0], starts=starts)
        sums = code_histograms(dense, v)
        for p, table, members in self._inputs_in_use():
            values = table[:, self.place[members]]
            result[members] = (values**power).T @ sums[starts[p] : starts[p + 1]]
        return result

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A' diag(curvature) A, for all columns or those at ``positions``.

        For two inputs with tables T and U it is T'H U, where H is the joint histogram of their
        levels, weighted by ``curvature`` (n_samples,).
        """
        if positions is not None:
            return self.gather(positions).gram(curvature)
        # Rows of weight 0 are left out if they are at least a quarter.
        rows = np.flatnonzero(curvature)
        codes = self.codes
        weights = curvature
        if 4 * rows.size <= 3 * curvature.size:
            codes = np.asfortranarray(codes[rows])
            weights = curvature[rows]
        result = np.empty((self.part.size, self.part.size))
        deadline = Deadline.current()
        inputs = self._inputs_in_use()
        for number, (p, left, members) in enumerate(inputs):
            deadline.check()
            for q, right, other_columns in inputs[number:]:
                shape = left.shape[0], right.shape[0]
                pair_codes = codes[:, p].astype(np.intp) * shape[1] + codes[:, q]
                joint = np.bincount(pair_codes, weights, shape[0] * shape[1]).reshape(shape)
                product = (
                    left[:, self.place[members]].T @ joint @ right[:, self.place[other_columns]]
                )
                result[np.ix_(members, other_columns)] = product
                result[np.ix_(other_columns, members)] = product.T
        return result

    def gather(self, columns: Columns) -> CodedBlock:
        """Return the columns at these positions, with the codes of only the inputs they need."""
        inputs, part = np.unique(self.part[columns], return_inverse=True)
        tables = [self.tables[p] for p in inputs]
        codes = self.codes if inputs.size == self.codes.shape[1] else self.codes[:, inputs]
        return CodedBlock(np.asfortranarray(codes), tables, part.ravel(), self.place[columns])

    def with_rows(self, rows: NDArray[np.int64]) -> CodedBlock:
        """Return the block of these rows, in their order; rows may repeat."""
        codes = np.asfortranarray(self.codes[rows])
        return CodedBlock(codes, self.tables, self.part, self.place)

    def append(self, other: Block) -> Block:
        """Return [A, B] for B = ``other``, with the codes and tables of both."""
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
        """Return the array (n_samples, n_columns), looked up from the tables."""
        result = np.empty(self.shape, order="F")
        for p, table, members in self._inputs_in_use():
            codes = self.codes[:, p]
            for column in members:
                result[:, column] = table[codes, self.place[column]]
        return result

    def _inputs_in_use(self) -> list[tuple[int, Array, Columns]]:
        """Return each input in use, its table, and the positions of its columns in this block."""
        # ``order`` has the columns of the first input, then those of the second one, ...
        order = np.argsort(self.part, kind="stable")
        ends = np.cumsum(np.bincount(self.part, minlength=len(self.tables)))
        begins = [0, *ends.tolist()]
        return [
            (p, table, order[begins[p] : begins[p + 1]])
            for p, table in enumerate(self.tables)
            if begins[p + 1] > begins[p]
        ]
