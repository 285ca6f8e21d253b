"""PairProducts: the columns x_i * x_j of all pairs of inputs, and sums over them; dense data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns, Design
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.search import ErrorBound, Finalists
from atomlearn.maps.pairs.tiles import Sums, clear_below, offer_tile, put_tile, weights_of_inputs
from atomlearn.maps.settings import SETTINGS

Reader = Callable[[int, int], NDArray[Any]]


class PairProducts(ABC):
    """What Polynomial asks of its data: products of two columns, never all of them at once."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_inputs)"""

    @abstractmethod
    def linear(self, v: Array) -> Array:
        """Return X'v."""

    def linear_at(self, v: Array, columns: Columns) -> Array:
        """Return X'v of these columns, the same numbers; what all of it takes by default."""
        return self.linear(v)[columns]

    def linear_bounds(self) -> Array | None:
        """Return sum_k |x_kj| >= |X'v| / max |v|; None unless ``linear_at`` is the cheaper."""
        return None

    @abstractmethod
    def sums(self, v: Array, i: Columns, j: Columns) -> Array:
        """Return sum_k v_k x_ki x_kj of each pair: the definition of a score, O(n) a pair.

        The value of a pair does not depend on which others are asked for.
        """

    @abstractmethod
    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        """Return the columns scale * x_i * x_j, or scale * x_i where j = -1."""

    @abstractmethod
    def all_sums(self, V: Array, index: PairIndex, squared: bool = False) -> Array:
        """Return sum_k v_k x_ki x_kj of every pair, in order (of x_ki^2 x_kj^2 if squared).

        For each column v of V, (m, n_pairs): X is read once.
        """

    @abstractmethod
    def largest(self) -> float:
        """Return max |x_ij|."""

    @abstractmethod
    def uses_single(self) -> bool:
        """Return whether ``search`` sums in single precision."""

    def error(self) -> ErrorBound:
        """Return the bound on the errors of the sums that ``search`` offers."""
        return ErrorBound.of(self.shape[0], self.largest(), self.uses_single())

    @abstractmethod
    def search(self, v: Array, index: PairIndex, finalists: Finalists, square: float) -> None:
        """Offer every pair that may be among the best, for v with max \\|v\\| <= 1.

        square : the weight of a square relative to that of a product, at most 1.
        """

    @abstractmethod
    def predict(self, weights: Array, index: PairIndex, square: float) -> Array:
        """Return sum_ij w_ij x_i x_j for dense weights of all pairs, those of squares scaled."""


class DensePairs(PairProducts):
    """Pairs of the columns of any design, by tiles of matrix products.

    Columns come through ``gather``, some at a time, or from the array itself where the design is
    a plain array; nothing of the size of X is kept between calls.
    """

    def __init__(self, base: Design) -> None:
        self.base = base
        self._largest: float | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.base.shape

    def linear(self, v: Array) -> Array:
        return self.base.scores(v).full()

    def sums(self, v: Array, i: Columns, j: Columns) -> Array:
        stored = self._stored()
        if stored is not None and stored.flags.f_contiguous:
            return _kernels.pair_sums_dense(stored, i, j, v)
        result = np.empty(i.size)
        # By input, so that few inputs are in memory at a time.
        order = np.argsort(i, kind="stable")
        width = max(1, SETTINGS.held_entries // (2 * self.base.shape[0]))
        for start in range(0, i.size, width):
            part = order[start : start + width]
            columns, first, second = self._inputs(i[part], j[part])
            result[part] = _kernels.pair_sums_dense(columns, first, second, v)
        return result

    def _inputs(self, i: Columns, j: Columns) -> tuple[NDArray[Any], Columns, Columns]:
        """Return the inputs of these pairs in Fortran order, and the places of i and j in it."""
        inputs, places = np.unique(np.concatenate([i, j]), return_inverse=True)
        columns = np.asfortranarray(self.base.gather(inputs).dense())
        return columns, places[: i.size], places[i.size :]

    def _stored(self) -> NDArray[Any] | None:
        return self.base.stored()

    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        result = np.empty((self.base.shape[0], i.size), order="F")
        # Linear columns: x_i with itself, then without.
        columns, first, second = self._inputs(i, np.where(j < 0, i, j))
        for place, (one, other, scale) in enumerate(zip(first, second, scales, strict=True)):
            column = result[:, place]
            np.multiply(columns[:, one], scale, out=column)
            if j[place] >= 0:
                column *= columns[:, other]
        return DenseBlock(result)

    def largest(self) -> float:
        if self._largest is None:
            largest = 0.0
            read = self._reader(None)
            for start in range(0, self.base.shape[1], SETTINGS.tile_columns):
                for lo, hi in self._cuts(start, start + SETTINGS.tile_columns):
                    part = read(lo, hi)
                    largest = max(largest, float(part.max()), -float(part.min()))
            self._largest = largest
        return self._largest

    def uses_single(self) -> bool:
        return SETTINGS.single_range[0] < self.largest() < SETTINGS.single_range[1]

    # --- tiles --------------------------------------------------------------------------------

    def _reader(self, dtype: Any) -> Reader:
        """Return a function that gives columns lo..hi as an array (n_samples, hi - lo)."""
        base, stored = self.base, self._stored()
        if stored is not None and dtype in (None, stored.dtype):
            return lambda lo, hi: stored[:, lo:hi]

        def gathered(lo: int, hi: int) -> NDArray[Any]:
            if stored is not None:
                return stored[:, lo:hi].astype(dtype)
            array = base.gather(np.arange(lo, hi, dtype=np.int64)).dense()
            return array if dtype is None else array.astype(dtype, copy=False)

        if base.shape[0] * base.shape[1] > SETTINGS.held_entries:
            return gathered
        if dtype is None:
            held = gathered(0, base.shape[1])
        else:
            held = np.empty(base.shape, dtype=dtype, order="F")
            for lo, hi in self._cuts(0, base.shape[1]):
                held[:, lo:hi] = gathered(lo, hi)
        return lambda lo, hi: held[:, lo:hi]

    def _width(self, wanted: int) -> int:
        return max(1, min(wanted, max(16, SETTINGS.tile_entries // self.base.shape[0])))

    def _cuts(self, start: int, stop: int) -> list[tuple[int, int]]:
        stop = min(stop, self.base.shape[1])
        width = self._width(SETTINGS.tile_columns)
        return [(lo, min(lo + width, stop)) for lo in range(start, stop, width)]

    def _share_out(
        self, work: Callable[[int, int], None], index: PairIndex, products: int = 1
    ) -> None:
        """Call work(lo, hi) for pieces of the inputs that begin pairs, on several threads."""
        width = self._width(min(SETTINGS.tile_rows, max(64, -(-index.n_rows // SETTINGS.shares))))
        starts = range(0, index.n_rows, width)
        operations = 0.5 * products * self.base.shape[0] * float(index.n_inputs) ** 2

        def piece(number: int) -> None:
            lo = starts[number]
            work(lo, min(lo + width, index.n_rows))

        _kernels.share_out(piece, len(starts), operations)

    def all_sums(self, V: Array, index: PairIndex, squared: bool = False) -> Array:
        result = np.empty((V.shape[1], index.n_columns - index.n_inputs))
        read = self._reader(np.float64)

        def work(lo: int, hi: int) -> None:
            left = np.square(read(lo, hi)) if squared else read(lo, hi)
            for start, stop in self._cuts(lo, index.n_inputs):
                right = np.square(read(start, stop)) if squared else read(start, stop)
                for v, sums in zip(V.T, result, strict=True):
                    put_tile((left * v[:, None]).T @ right, lo, start, index, sums)

        self._share_out(work, index, V.shape[1])
        return result

    def search(self, v: Array, index: PairIndex, finalists: Finalists, square: float) -> None:
        single = self.uses_single()
        dtype = np.float32 if single else np.float64
        read, weights = self._reader(dtype), v.astype(dtype)
        radii = self._radii(np.abs(v))
        n_samples = self.base.shape[0]
        sums = Sums(single)
        finalists.count(possible=float(n_samples) * finalists.work.pairs)

        def work(lo: int, hi: int) -> None:
            left: NDArray[Any] | None = None
            reach = float(radii[lo:hi].max())
            for start, stop in self._cuts(lo, index.n_inputs):
                bound = reach * float(radii[start:stop].max())
                if not finalists.could_enter(bound):
                    continue
                if left is None:
                    left = (read(lo, hi) * weights[:, None]).T
                tile = sums.of(left, read(start, stop))
                if start < hi:
                    clear_below(tile, lo, start, index.shift, square)
                pairs = offer_tile(tile, lo, start, index.shift, bound, radii, finalists)
                finalists.count(computed=pairs, products=float(n_samples) * pairs)

        self._share_out(work, index)

    def _radii(self, weights: Array) -> Array:
        """Return r_i >= sqrt(sum_k |v_k| x_ki^2), and not much more; 0 where all terms are."""
        base = self.base
        n_features = base.shape[1]
        if base.listable:
            with np.errstate(over="ignore", invalid="ignore"):
                norms = base.squared_norms(weights)
            doubtful = np.flatnonzero(~((norms > 1e-200) & (norms < 1e200)))
            norms[doubtful] = 0.0
        else:
            norms, doubtful = np.zeros(n_features), np.arange(n_features)
        radii: Array = np.sqrt(norms)
        counted = weights > 0
        width = max(1, LIMITS.piece_entries // base.shape[0])
        for start in range(0, doubtful.size, width):
            part = doubtful[start : start + width]
            array = np.abs(base.gather(part).dense()[counted].astype(np.float64))
            peaks = array.max(axis=0, initial=0.0)
            array /= np.where(peaks > 0, peaks, 1.0)
            radii[part] = np.maximum(np.sqrt(weights[counted] @ array**2), 1e-150) * peaks
        radii *= SETTINGS.inflation
        return radii

    def predict(self, weights: Array, index: PairIndex, square: float) -> Array:
        n_samples, n_features = self.base.shape
        result = np.zeros(n_samples)
        read = self._reader(np.float64)
        starts = index.starts(np.arange(index.n_rows + 1)) - index.n_inputs
        for lo in range(0, index.n_rows, self._width(SETTINGS.weight_rows)):
            hi = min(lo + self._width(SETTINGS.weight_rows), index.n_rows)
            if not weights[starts[lo] : starts[hi]].any():
                continue
            matrix = weights_of_inputs(weights, lo, hi, index, square)
            inner = np.zeros((n_samples, hi - lo))
            for start, stop in self._cuts(lo, n_features):
                inner += read(start, stop) @ matrix[:, start - lo : stop - lo].T
            result += np.einsum("ki,ki->k", read(lo, hi), inner)
        return result
