"""RowPairs: pairs of the columns of a tall and rather full CSR array, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.data.blocks import DenseBlock, SparseBlock, prefers_dense
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns, Design
from atomlearn.maps.pairs.index import PairIndex, put_tile
from atomlearn.maps.pairs.products import DensePairs, peak_of
from atomlearn.maps.pairs.search import Finalists
from atomlearn.maps.settings import SETTINGS
from atomlearn.storage.device.tensors import BUDGET


class RowPairs(DensePairs):
    """Pairs of the columns of a sparse array by rows whose entries outnumber its pairs.

    All sums of products fit into less memory than X takes, so they are added up while X is read
    by rows, and X is never dense. Rows where v is zero are not read: with the squared hinge loss
    those of all samples that lie on the right side of the margin.
    """

    base: Design

    @staticmethod
    def suits(base: Design) -> bool:
        """Return whether the sums of all pairs take less memory than this array."""
        X = base.stored_sparse()
        return X is not None and X.format == "csr" and X.shape[1] ** 2 <= X.nnz

    def largest(self) -> float:
        if self._largest is None:
            self._largest = peak_of(self.base.stored_sparse().data)
        return self._largest

    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        full = super().block(i, j, scales)
        # Products of sparse columns are sparser than these.
        columns = full.dense()
        nonzeros = int(np.count_nonzero(columns))
        if prefers_dense(columns.shape[0], columns.shape[1], nonzeros):
            return DenseBlock(columns, nonzeros=nonzeros)
        taken = sp.csc_array(columns)
        return SparseBlock(taken.data, taken.indices, taken.indptr, columns.shape[0])

    def _pieces(self, rows: Columns, dtype: Any) -> Iterator[tuple[Columns, NDArray[Any]]]:
        """Yield a bounded number of the rows at a time, and X there, dense."""
        matrix, most = self.base.stored_sparse(), LIMITS.copied_entries // self.shape[1]
        size = max(1, min(BUDGET.single_terms, most))
        for start in range(0, rows.size, size):
            part = rows[start : start + size]
            yield part, matrix[part].astype(dtype, copy=False).toarray()

    def _sums(self, v: Array, dtype: Any, squared: bool = False) -> list[tuple[int, Array]]:
        """Return strips: inputs from lo on, and sum_k v_k x_ki x_kj with j >= lo (of squares).

        In this precision over at most ``single_terms`` rows, in double over their sums.
        """
        d = self.shape[1]
        width = max(64, -(-d // SETTINGS.shares))
        strips = [(lo, np.zeros((min(width, d - lo), d - lo))) for lo in range(0, d, width)]

        def work(number: int) -> None:
            lo, total = strips[number]
            with np.errstate(over="ignore", invalid="ignore"):  # looked for by the caller
                total += left[:, lo : lo + total.shape[0]].T @ right[:, lo:]

        for rows, right in self._pieces(np.flatnonzero(v), dtype):
            if squared:
                np.square(right, out=right)
            left = right * v[rows].astype(dtype)[:, None]
            _kernels.share_out(work, len(strips), 0.5 * rows.size * float(d) ** 2)
        return strips

    def all_sums(self, V: Array, index: PairIndex, squared: bool = False) -> Array:
        result = np.empty((V.shape[1], index.n_columns - index.n_inputs))
        for v, sums in zip(V.T, result, strict=True):
            for lo, total in self._sums(np.ascontiguousarray(v), np.float64, squared):
                put_tile(total, lo, lo, index, sums)
        return result

    def search(self, v: Array, index: PairIndex, finalists: Finalists, square: float) -> None:
        radii, computed = self._radii(np.abs(v)), 0
        for lo, total in self._sums(v, np.float32 if self.uses_single() else np.float64):
            tile = self._pairs_only(total, lo, lo, index, square)
            bound = float(radii[lo : lo + total.shape[0]].max()) * float(radii[lo:].max())
            computed += self._offer(tile, lo, lo, index.shift, bound, radii, finalists)
        products = float(np.count_nonzero(v)) * computed
        possible = float(self.shape[0]) * finalists.work.pairs
        finalists.count(computed=computed, products=products, possible=possible)
