"""RowPairs: pairs of the columns of a tall and rather full CSR array, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.designs.blocks import DenseBlock, SparseBlock, prefers_dense
from atomlearn.designs.pair_index import PairIndex
from atomlearn.designs.pair_products import DensePairs, clear_below, offer_tile
from atomlearn.designs.pair_search import SINGLE_ROWS, Finalists
from atomlearn.designs.sparse import SparseDesign
from atomlearn.interfaces.design import Array, Block, Columns, Design

#: Entries made dense at a time (2 MB in single precision).
PIECE_ENTRIES = 2**19
#: Sums over the rows are shared out in so many pieces, of 64 inputs at least.
SHARES = 4


class RowPairs(DensePairs):
    """Pairs of the columns of a sparse array by rows whose entries outnumber its pairs.

    All sums of products fit into less memory than X takes, so they are added up while X is read
    by rows, and X is never dense. Rows where v is zero are not read: with the squared hinge loss
    those of all samples that lie on the right side of the margin.
    """

    base: SparseDesign

    def __init__(self, base: SparseDesign) -> None:
        super().__init__(base)

    @staticmethod
    def suits(base: Design) -> bool:
        """Return whether the sums of all pairs take less memory than this array."""
        if not isinstance(base, SparseDesign) or base.matrix().format != "csr":
            return False
        return base.shape[1] ** 2 <= base.nonzeros

    def largest(self) -> float:
        if self._largest is None:
            data = self.base.matrix().data
            self._largest = max(float(data.max(initial=0.0)), -float(data.min(initial=0.0)))
        return self._largest

    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        full = super().block(i, j, scales)
        # Products of sparse columns are sparser than these.
        columns = full.dense()
        nonzeros = np.count_nonzero(columns)
        if prefers_dense(*columns.shape, nonzeros):
            return DenseBlock(columns, nonzeros=nonzeros)
        taken = sp.csc_array(columns)
        return SparseBlock(taken.data, taken.indices, taken.indptr, columns.shape[0])

    def _pieces(self, rows: Columns, dtype: Any) -> Iterator[tuple[Columns, NDArray[Any]]]:
        """Yield some of the rows, and X there as a dense array."""
        matrix = self.base.matrix()
        size = max(1, min(SINGLE_ROWS, PIECE_ENTRIES // max(self.shape[1], 1)))
        for start in range(0, rows.size, size):
            part = rows[start : start + size]
            yield part, matrix[part].astype(dtype, copy=False).toarray()

    def _sums(self, v: Array, dtype: Any, squared: bool = False) -> Array:
        """Return sum_k v_k x_ki x_kj (of squares if ``squared``) for i <= j, shape (d, d).

        In this precision over at most ``SINGLE_ROWS`` rows, in double over their sums.
        """
        d = self.shape[1]
        total, tile = np.zeros((d, d)), np.empty((d, d), dtype=dtype)
        width = max(64, -(-d // SHARES))
        starts = range(0, d, width)

        def work(number: int) -> None:
            lo, hi = starts[number], min(starts[number] + width, d)
            with np.errstate(over="ignore", invalid="ignore"):  # looked for by the caller
                np.matmul(left[:, lo:hi].T, right[:, lo:], out=tile[lo:hi, lo:])
                total[lo:hi, lo:] += tile[lo:hi, lo:]

        for rows, right in self._pieces(np.flatnonzero(v), dtype):
            if squared:
                np.square(right, out=right)
            left = right * v[rows].astype(dtype)[:, None]
            _kernels.share_out(work, len(starts), 0.5 * rows.size * float(d) ** 2)
        return total

    def all_sums(self, v: Array, index: PairIndex, squared: bool = False) -> Array:
        result = np.empty(index.n_columns - index.n_inputs)
        sums = self._sums(v, np.float64, squared)
        begins = index.starts(np.arange(index.n_rows + 1)) - index.n_inputs
        for i in range(index.n_rows):
            result[begins[i] : begins[i + 1]] = sums[i, i + index.shift :]
        return result

    def search(self, v: Array, index: PairIndex, finalists: Finalists, square: float) -> None:
        single = self.uses_single()
        radii = self._radii(np.abs(v))
        sums = self._sums(v, np.float32 if single else np.float64)
        clear_below(sums, 0, 0, index.shift, square)
        bound = float(radii.max()) ** 2
        pairs = offer_tile(sums, 0, 0, index.shift, bound, radii, finalists)
        possible = float(self.shape[0]) * finalists.work.pairs
        products = float(np.count_nonzero(v)) * pairs
        finalists.count(computed=pairs, products=products, possible=possible)

    def predict(self, weights: Array, index: PairIndex, square: float) -> Array:
        d = self.shape[1]
        begins = index.starts(np.arange(index.n_rows + 1)) - index.n_inputs
        matrix = np.zeros((d, d))
        for i in range(index.n_rows):
            matrix[i, i + index.shift :] = weights[begins[i] : begins[i + 1]]
            if index.squares:
                matrix[i, i] *= square
        result = np.zeros(self.shape[0])
        for rows, array in self._pieces(np.arange(self.shape[0]), np.float64):
            result[rows] = np.einsum("ki,ki->k", array @ matrix, array)
        return result
