"""RowPairs: pairs of the columns of a tall and rather full CSR array, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.data.blocks import DenseBlock, SparseBlock, prefers_dense
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns, Design
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.products import DensePairs
from atomlearn.maps.pairs.search import Finalists
from atomlearn.maps.pairs.tiles import clear_below, offer_tile, put_tile, weights_of_inputs
from atomlearn.maps.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class _Room:
    """Memory of a search: sums of inputs lo..hi with lo..d, in strips; a piece of X, v X there.

    strips : lo, the sums, and the share of a piece in them. Searches use a room again: what is
    freed in between would be scattered, and not be given back.
    """

    strips: list[tuple[int, Array, NDArray[Any]]]
    left: NDArray[Any]
    right: NDArray[Any]

    @classmethod
    def of(cls, d: int, dtype: Any) -> _Room:
        """Return room for d inputs; sums over pieces have this precision."""
        n_rows = max(1, min(SETTINGS.single_rows, LIMITS.copied_entries // max(d, 1)))
        width = max(64, -(-d // SETTINGS.strips))
        shapes = [(lo, (min(width, d - lo), d - lo)) for lo in range(0, d, width)]
        strips = [(lo, np.empty(shape), np.empty(shape, dtype=dtype)) for lo, shape in shapes]
        return cls(strips, *np.empty((2, n_rows, d), dtype=dtype))


class RowPairs(DensePairs):
    """Pairs of the columns of a sparse array by rows whose entries outnumber its pairs.

    All sums of products fit into less memory than X takes, so they are added up while X is read
    by rows, and X is never dense. Rows where v is zero are not read: with the squared hinge loss
    those of all samples that lie on the right side of the margin.
    """

    base: Design

    def __init__(self, base: Design) -> None:
        super().__init__(base)
        self._rooms: list[_Room] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return RowPairs, (self.base,)

    @staticmethod
    def suits(base: Design) -> bool:
        """Return whether the sums of all pairs take less memory than this array."""
        X = base.stored_sparse()
        return X is not None and X.format == "csr" and X.shape[1] ** 2 <= X.nnz

    def largest(self) -> float:
        if self._largest is None:
            data = self.base.stored_sparse().data
            self._largest = max(float(data.max(initial=0.0)), -float(data.min(initial=0.0)))
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

    def _pieces(self, rows: Columns, room: NDArray[Any]) -> Iterator[tuple[Columns, NDArray[Any]]]:
        """Yield as many of the rows as there is room for at a time, and X there, dense."""
        matrix, size = self.base.stored_sparse(), room.shape[0]
        for start in range(0, rows.size, size):
            part = rows[start : start + size]
            some = matrix[part].astype(room.dtype, copy=False)
            yield part, some.toarray(out=room[: part.size])

    def _sum(self, v: Array, room: _Room, squared: bool = False) -> None:
        """Set the strips to sum_k v_k x_ki x_kj (of squares if ``squared``) for i <= j.

        In the room's precision over at most ``single_rows`` rows, in double over their sums.
        """
        for _, total, _ in room.strips:
            total[:] = 0.0

        def work(number: int) -> None:
            lo, total, tile = room.strips[number]
            with np.errstate(over="ignore", invalid="ignore"):  # looked for by the caller
                np.matmul(left[:, lo : lo + total.shape[0]].T, right[:, lo:], out=tile)
                np.add(total, tile, out=total)

        for rows, right in self._pieces(np.flatnonzero(v), room.right):
            if squared:
                np.square(right, out=right)
            left = room.left[: rows.size]
            np.multiply(right, v[rows].astype(right.dtype)[:, None], out=left)
            operations = 0.5 * rows.size * float(self.shape[1]) ** 2
            _kernels.share_out(work, len(room.strips), operations)

    def all_sums(self, V: Array, index: PairIndex, squared: bool = False) -> Array:
        result = np.empty((V.shape[1], index.n_columns - index.n_inputs))
        room = _Room.of(self.shape[1], np.float64)
        for v, sums in zip(V.T, result, strict=True):
            self._sum(np.ascontiguousarray(v), room, squared)
            for lo, total, _ in room.strips:
                put_tile(total, lo, lo, index, sums)
        return result

    def search(self, v: Array, index: PairIndex, finalists: Finalists, square: float) -> None:
        radii = self._radii(np.abs(v))
        try:
            room = self._rooms.pop()
        except IndexError:  # None yet, or another search has it at this time.
            room = _Room.of(self.shape[1], np.float32 if self.uses_single() else np.float64)
        self._sum(v, room)
        computed = 0
        for lo, total, _ in room.strips:
            clear_below(total, lo, lo, index.shift, square)
            bound = float(radii[lo : lo + total.shape[0]].max()) * float(radii[lo:].max())
            computed += offer_tile(total, lo, lo, index.shift, bound, radii, finalists)
        self._rooms.append(room)
        products = float(np.count_nonzero(v)) * computed
        possible = float(self.shape[0]) * finalists.work.pairs
        finalists.count(computed=computed, products=products, possible=possible)

    def predict(self, weights: Array, index: PairIndex, square: float) -> Array:
        matrix = weights_of_inputs(weights, 0, index.n_rows, index, square)
        result = np.zeros(self.shape[0])
        room = _Room.of(self.shape[1], np.float64).right
        for rows, array in self._pieces(np.arange(self.shape[0]), room):
            result[rows] = np.einsum("ki,ki->k", array[:, : index.n_rows] @ matrix, array)
        return result
