"""DevicePairs: products of two columns on a device; the best come back, to be summed in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.sparse import SparseDesign
from atomlearn.core.interfaces import Array, Block, Columns, Design
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.products import DensePairs
from atomlearn.maps.pairs.search import ErrorBound, Finalists
from atomlearn.maps.pairs.sparse import SparsePairs, columns_of
from atomlearn.maps.pairs.tiles import check_peak, pairs_in_tile, put_tile, weights_of_inputs
from atomlearn.maps.settings import SETTINGS
from atomlearn.storage.device.columns import DeviceColumns
from atomlearn.storage.device.sparse import SparseTensor
from atomlearn.storage.device.tensors import (
    SingleRounding,
    as_written,
    device_of,
    kth_largest,
    namespace,
    to_device_of,
    to_host,
)


class DevicePairs(DensePairs):
    """Pairs of the columns of a tensor, by tiles of matrix products where the tensor is.

    The search is that of ``DensePairs``: tiles X_A' diag(v) X_B of sums in float32 (tf32 where the
    library is allowed it, float64 where magnitudes of X ask for it) are compared with a running
    threshold, each sum widened by the bound on its error, and what may be among the best is
    computed again by the definition, from columns on the processor. So the answer is the one of
    the same array there. A tile is compared on the device; the pairs that pass are all that comes
    back.

    Notes
    -----
    |fl(sum_k v_k x_ki x_kj) - sum| <= ((m + 12) u + c) r_i r_j with r_i^2 = sum_k |v_k| x_ki^2 and
    m = min(n, 4096); u and c as in ``OnDevice``. Memory on the device: a tile, and up to 256 MB of
    columns that are not there as they are needed (sparse, standardized, some rows, or float64).
    """

    def __init__(self, base: Design, columns: DeviceColumns) -> None:
        super().__init__(base)
        self._columns = columns

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.base, self._columns)

    def largest(self) -> float:
        if self._largest is None:
            largest, dtype = 0.0, self._columns.dtype
            for lo, hi in self._parts(0, dtype):
                part = self._columns.read(lo, hi, dtype)
                xp = namespace(part)
                largest = max(largest, float(to_host(xp.max(xp.abs(part)))))
            self._largest = largest
        return self._largest

    def error(self) -> ErrorBound:
        double = super().error()
        # Numbers below the least normal one may be lost as a whole: factors, products and sums.
        absolute = 4.0 * double.absolute
        if not self.uses_single():
            return ErrorBound(double.relative, absolute)
        rounding = SingleRounding.of(self._columns.tensor.sample)
        # Ten more roundings: casts of x_i, x_j and v, the product, scales, and comparisons.
        single = rounding.relative(min(self.shape[0], SETTINGS.single_rows) + 10)
        return ErrorBound(double.relative + single, absolute)

    def search(self, v: Array, index: PairIndex, finalists: Finalists, square: float) -> None:
        dtype = np.float32 if self.uses_single() else np.float64
        read, weights = self._columns.reader(dtype), self._weights(v.astype(dtype))
        radii = self._radii(np.abs(v))
        tiles = _Tiles(index, finalists, square, radii, self._weights(radii))
        n_samples = self.shape[0]
        finalists.count(possible=float(n_samples) * finalists.work.pairs)
        for lo, hi in self._strips(index, dtype, SETTINGS.device_rows):
            reach, left = float(radii[lo:hi].max()), None
            for start, stop in self._parts(lo, dtype):
                bound = reach * float(radii[start:stop].max())
                if not finalists.could_enter(bound):
                    continue
                left = read(lo, hi) if left is None else left
                pairs = tiles.offer(_sums(left, read(start, stop), weights), lo, start, bound)
                finalists.count(computed=pairs, products=float(n_samples) * pairs)

    def all_sums(self, V: Array, index: PairIndex, squared: bool = False) -> Array:
        result = np.empty((V.shape[1], index.n_columns - index.n_inputs))
        read = self._columns.reader(np.float64)
        each = [(self._weights(v), sums) for v, sums in zip(V.T, result, strict=True)]
        for lo, hi in self._strips(index, np.float64, SETTINGS.device_rows):
            left = read(lo, hi)
            for start, stop in self._parts(lo, np.float64):
                right = read(start, stop)
                for weights, sums in each:
                    tile = _sums(left, right, weights, squared)
                    put_tile(to_host(tile), lo, start, index, sums)
        return result

    def predict(self, weights: Array, index: PairIndex, square: float) -> Array:
        read = self._columns.reader(np.float64)
        starts = index.starts(np.arange(index.n_rows + 1)) - index.n_inputs
        total = np.zeros(self.shape[0])
        for lo, hi in self._strips(index, np.float64, SETTINGS.weight_rows):
            if not weights[starts[lo] : starts[hi]].any():
                continue
            matrix = self._weights(weights_of_inputs(weights, lo, hi, index, square))
            left = read(lo, hi)
            xp = namespace(left)
            inner = xp.zeros_like(left)
            for start, stop in self._parts(lo, np.float64):
                part = xp.matrix_transpose(matrix[:, start - lo : stop - lo])
                inner = inner + xp.matmul(read(start, stop), part)
            total += to_host(xp.sum(left * inner, axis=1))
        return total

    def _weights(self, array: Array) -> Any:
        return to_device_of(self._columns.tensor.sample, array)

    def _strips(self, index: PairIndex, dtype: Any, wanted: int) -> Iterator[tuple[int, int]]:
        """Yield runs of the inputs that begin pairs."""
        width = self._columns.width(wanted, dtype)
        for lo in range(0, index.n_rows, width):
            yield lo, min(lo + width, index.n_rows)

    def _parts(self, start: int, dtype: Any) -> Iterator[tuple[int, int]]:
        """Yield runs of the inputs from ``start`` on."""
        stop, width = self.shape[1], self._columns.width(SETTINGS.device_columns, dtype)
        for lo in range(start, stop, width):
            yield lo, min(lo + width, stop)


class SparseDevicePairs(DevicePairs):
    """Pairs of the columns of a sparse tensor that is neither nearly empty nor rather full.

    Searched by tiles, which are dense for a moment; what passes is summed as sparse columns.
    """

    def sums(self, v: Array, i: Columns, j: Columns) -> Array:
        few, i, j = self._some(i, j)
        return few.sums(v, i, j)

    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        few, first, second = self._some(i, np.where(j < 0, i, j))
        return few.block(first, np.where(j < 0, -1, second), scales)

    def _some(self, i: Columns, j: Columns) -> tuple[SparsePairs, Columns, Columns]:
        """Return the inputs of these pairs on the processor, and the places of i and j there."""
        inputs, places = np.unique(np.concatenate([i, j]), return_inverse=True)
        few = SparseDesign(columns_of(self.base, inputs))
        return SparsePairs(few), places[: i.size], places[i.size :]


def device_pairs(base: Design) -> DevicePairs | SparsePairs | None:
    """Return what forms the products of the columns of a design on a device; None of others.

    Sums of what passes are defined as those of the same array on the processor are.
    """
    columns = DeviceColumns.of(base)
    if columns is None:
        return None
    tensor = columns.tensor
    if not isinstance(tensor, SparseTensor) or columns.shift is not None:
        return DevicePairs(base, columns)
    share = tensor.nonzeros / (tensor.shape[0] * tensor.shape[1])
    if share >= SETTINGS.tiles_from:
        return (DevicePairs if share >= LIMITS.blas_from else SparseDevicePairs)(base, columns)
    host = tensor.host()
    return SparsePairs(SparseDesign(host if columns.rows is None else host[columns.rows]))


class _Tiles:
    """Tiles of sums against the threshold of a search, on the device."""

    def __init__(
        self, index: PairIndex, finalists: Finalists, square: float, radii: Array, there: Any
    ) -> None:
        self.index, self.finalists, self.square = index, finalists, square
        # On the processor, and next to the tiles.
        self.radii, self._there = radii, there

    def offer(self, tile: Any, lo: int, start: int, bound: float) -> int:
        """Offer the sums of inputs lo, ... with inputs start, ... that may matter.

        bound >= r_i r_j in all of the tile. Returns how many pairs it holds.
        """
        xp, finalists = namespace(tile), self.finalists
        height, width = (int(size) for size in tile.shape)
        computed = pairs_in_tile(height, width, lo, start, self.index.shift)
        tile = xp.abs(tile)
        if start < lo + height:
            tile = self._of_pairs(tile, lo, start)
        peak = float(to_host(xp.max(tile)))
        check_peak(peak)
        margin = finalists.error.relative * bound + finalists.error.absolute
        if peak < finalists.least_magnitude(margin):
            return computed
        magnitudes = xp.astype(tile, xp.float64)
        errors = self._errors(lo, lo + height, start, start + width)
        reached = self._reached(magnitudes, errors)
        number = int(to_host(xp.sum(xp.astype(reached, xp.int64))))
        if number > 4 * finalists.wanted + 4096 or finalists.threshold == 0.0:
            if height * width >= finalists.wanted:
                # As many sums as are wanted have the wanted-th least magnitude here, or more.
                least = xp.reshape(magnitudes - errors, (-1,))
                finalists.raise_to(max(0.0, kth_largest(least, finalists.wanted)) * (1 - 4e-7))
            reached = self._reached(magnitudes, errors)
        places = xp.nonzero(xp.reshape(reached, (-1,)))[0]
        chosen = np.array(to_host(xp.take(xp.reshape(magnitudes, (-1,)), places)))
        i, j = np.divmod(np.array(to_host(places), dtype=np.int64), width)
        i, j = i + lo, j + start
        pairs = j >= i + self.index.shift
        finalists.offer(i[pairs], j[pairs], chosen[pairs], self.radii)
        return computed

    def _of_pairs(self, tile: Any, lo: int, start: int) -> Any:
        """Return the tile with zeros where there is no pair, and squares weighed."""
        xp, device = namespace(tile), device_of(tile)
        i = xp.arange(lo, lo + tile.shape[0], device=device)[:, None]
        j = xp.arange(start, start + tile.shape[1], device=device)[None, :]
        zero, weight = xp.zeros_like(tile), xp.full_like(tile, self.square)
        tile = xp.where(j >= i + self.index.shift, tile, zero)
        return xp.where(i == j, tile * weight, tile) if self.index.squares else tile

    def _errors(self, lo: int, hi: int, start: int, stop: int) -> Any:
        """Return the bounds on the errors of a tile's sums; 0 where all terms are 0."""
        error, left, right = self.finalists.error, self._there[lo:hi], self._there[start:stop]
        xp = namespace(left)
        bounds = error.relative * (left[:, None] * right[None, :]) + error.absolute
        some = (left > 0)[:, None] & (right > 0)[None, :]
        return xp.where(some, bounds, xp.zeros_like(bounds))

    def _reached(self, magnitudes: Any, errors: Any) -> Any:
        """Return which sums may reach the threshold."""
        upper = magnitudes + errors
        return (upper >= self.finalists.least_magnitude(0.0)) & (upper > 0)


def _sums(left: Any, right: Any, weights: Any, squared: bool = False) -> Any:
    """Return sum_k w_k x_ki x_kj (x_ki^2 x_kj^2), in single precision over some rows at a time."""
    xp = namespace(right)
    total: Any = None
    for start in range(0, right.shape[0], SETTINGS.single_rows):
        rows = slice(start, min(start + SETTINGS.single_rows, right.shape[0]))
        one, other, w = left[rows, :], right[rows, :], weights[rows]
        if squared:
            one, other = one * one, other * other
        with as_written(right):
            part = xp.matmul(xp.matrix_transpose(one * w[:, None]), other)
        if right.shape[0] > SETTINGS.single_rows:
            part = xp.astype(part, xp.float64)
        total = part if total is None else total + part
    return total
