"""PairProducts: scores of all pairwise interactions x_i * x_j, never stored; dense data.

A search for the largest scores offers pairs to its *finalists*, the candidates so far. They may
have a *listing*: the best pairs of an earlier vector, with a bound on all others (``search.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core import Array, Block, Columns, DenseBlock, Design
from atomlearn.maps.pairs.index import PairIndex, put_tile
from atomlearn.maps.pairs.search import ErrorBound, Finalists
from atomlearn.maps.settings import SETTINGS
from atomlearn.storage.device.tensors import (
    BUDGET,
    as_written,
    in_double,
    kth_largest,
    namespace,
    to_device_of,
    to_host,
)

#: Returns columns lo..hi as an array on the processor, or as a tensor on the device of X.
Reader = Callable[[int, int], Any]


class PairProducts(ABC):
    """Implicit matrix of all products x_i * x_j of two columns of X, for ``Polynomial``.

    The score of a pair (i, j) is the sum over samples sum_k v_k x_ki x_kj. Subclasses differ in how
    they store X: sparse, dense, or on a device.
    """

    base: Design

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_inputs)."""
        return self.base.shape

    def linear(self, v: Array) -> Array:
        """Return the scores X'v of the single inputs, (n_inputs,)."""
        return self.base.scores(v).full()

    @abstractmethod
    def sums(self, v: Array, i: Columns, j: Columns) -> Array:
        """Return the scores sum_k v_k x_ki x_kj of the pairs (i, j), in O(n_samples) per pair.

        The rounding of a score does not depend on the other pairs.
        """

    @abstractmethod
    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        """Return the columns scales * x_i * x_j as a block, or scales * x_i for j = -1.

        i, j and ``scales`` have one entry for each column.
        """

    @abstractmethod
    def all_sums(self, V: Array, index: PairIndex, squared: bool = False) -> Array:
        """Return sum_k v_k x_ki x_kj of every pair in the order of ``index``, (m, n_pairs).

        The result has a row for each column v of V (n_samples, m); X is read once. If ``squared``,
        the sums are those of v_k x_ki^2 x_kj^2.
        """

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest absolute entry of X."""

    @abstractmethod
    def uses_single(self) -> bool:
        """Return whether ``search`` sums in single precision."""

    def error(self) -> ErrorBound:
        """Return the bound on the errors of the sums that ``search`` offers."""
        return ErrorBound.of(self.shape[0], self.largest, self.uses_single())

    @abstractmethod
    def search(
        self, v: Array, change: Array, index: PairIndex, finalists: Finalists, square: float
    ) -> None:
        """Pass every pair that may have one of the largest scores to ``finalists``; \\|v_k\\| <= 1.

        Parameters
        ----------
        v : array
            The vector.
        change : array
            v minus the vector of the listing in ``finalists``, or v if there is no listing.
        index : PairIndex
            Numbering of the pairs.
        finalists : Finalists
            Receives the pairs.
        square : float
            Weight of a square relative to a product, at most 1.
        """


class DensePairs(PairProducts):
    """Scores of all pairs of columns of any design, by blocked matrix products X_A' diag(v) X_B.

    Such a product is a *tile*: the scores of all pairs of an input of group A and one of group B.
    Groups of columns come from ``gather``, or are views of the array if the design is a plain
    array; no copy of X is kept between calls.
    """

    #: Largest number of threads for the tiles; None: no limit.
    most_threads: int | None = None

    def __init__(self, base: Design) -> None:
        self.base = base

    def sums(self, v: Array, i: Columns, j: Columns) -> Array:
        """Return the scores sum_k v_k x_ki x_kj of the pairs (i, j), (m,)."""
        result = np.empty(i.size)
        # Sorted by input, so that few inputs are in memory at a time.
        order = np.argsort(i, kind="stable")
        width = max(1, BUDGET.held_entries // (2 * self.base.shape[0]))
        for start in range(0, i.size, width):
            part = order[start : start + width]
            columns, first, second = self._inputs(i[part], j[part])
            result[part] = _kernels.pair_sums_dense(columns, first, second, v)
        return result

    def _inputs(self, i: Columns, j: Columns) -> tuple[NDArray[Any], Columns, Columns]:
        """Return the inputs of the pairs (i, j) as an array, and the positions of i and j in it.

        The array has one column, in Fortran order, for each distinct input.
        """
        inputs, positions = np.unique(np.concatenate([i, j]), return_inverse=True)
        columns = np.asfortranarray(self.base.gather(inputs).dense())
        return columns, positions[: i.size], positions[i.size :]

    def block(self, i: Columns, j: Columns, scales: Array) -> Block:
        """Return the columns scales * x_i * x_j, or scales * x_i for j = -1, as a dense block.

        i, j and ``scales`` have one entry for each column.
        """
        result = np.empty((self.base.shape[0], i.size), order="F")
        # For linear columns, input i is at the position of j, and no product is taken.
        columns, first, second = self._inputs(i, np.where(j < 0, i, j))
        for number, (position, second_position, scale) in enumerate(
            zip(first, second, scales, strict=True)
        ):
            column = result[:, number]
            np.multiply(columns[:, position], scale, out=column)
            if j[number] >= 0:
                column *= columns[:, second_position]
        return DenseBlock(result)

    @cached_property
    def largest(self) -> float:
        """The largest absolute entry of X."""
        read = self._reader(self.base.dtype)
        groups = self._cuts(0, self.base.dtype)
        return max((peak_of(read(lo, hi)) for lo, hi in groups), default=0.0)

    def uses_single(self) -> bool:
        """Return whether ``search`` sums in single precision.

        The entries of X must be far from overflow and underflow.
        """
        return SETTINGS.single_range[0] < self.largest < SETTINGS.single_range[1]

    # --- tiles, of tensors where the columns are ------------------------------------------------

    def _reader(self, dtype: Any, power: int = 1) -> Reader:
        """Return a function (lo, hi) -> columns lo, ..., hi - 1 to a power, (n_samples, hi - lo).

        The columns have the type ``dtype``. If memory allows, they are copied once, not for each
        group of inputs; an array of this type is not copied at all.
        """
        base = self.base
        stored = self.base.stored()
        is_stored = stored is not None and not base.traits.is_sparse and dtype == stored.dtype
        if is_stored and power == 1:
            return lambda lo, hi: stored[:, lo:hi]

        def gathered(lo: int, hi: int) -> NDArray[Any]:
            """Return columns lo, ..., hi - 1 to the power, gathered from the design."""
            array = base.gather(np.arange(lo, hi, dtype=np.int64)).dense()
            return array.astype(dtype, copy=False) ** power

        if base.shape[0] * base.shape[1] > BUDGET.held_entries:
            return gathered
        # The copy is made 64 columns at a time, which bounds the memory of conversions.
        converted = np.empty(base.shape, dtype=dtype, order="F")
        for lo in range(0, base.shape[1], 64):
            converted[:, lo : lo + 64] = gathered(lo, min(lo + 64, base.shape[1]))
        return lambda lo, hi: converted[:, lo:hi]

    def _width(self, wanted: int, dtype: Any) -> int:
        """Return the number of inputs to read at a time: ``wanted``, or fewer if rows are many.

        At least 16 are read, so that products remain fast. On a device the number also depends on
        the type ``dtype``.
        """
        return max(1, min(wanted, max(16, BUDGET.tile_entries // self.base.shape[0])))

    def _product(self, left: Any, right: Any) -> Any:
        """Return left @ right for left (a, n_samples) and right (n_samples, b).

        In single precision the rows are taken in groups, whose products are added in double
        precision. So the number of roundings in single precision is bounded.
        """
        xp = namespace(right)
        n_samples = right.shape[0]
        step = n_samples if right.dtype == xp.float64 else min(BUDGET.single_terms, n_samples)
        # Overflow raises no warning here, because ``_offer`` checks for it.
        with as_written(right), np.errstate(over="ignore", invalid="ignore"):
            total = xp.matmul(left[:, :step], right[:step, :])
            if n_samples > step:
                total = in_double(total)
            for start in range(step, n_samples, step):
                rows = slice(start, min(start + step, n_samples))
                total += xp.matmul(left[:, rows], right[rows, :])
        return total

    def _pairs_only(self, tile: Any, lo: int, start: int, index: PairIndex, square: float) -> Any:
        """Return a tile in which entries that are no pairs are 0, and squares are weighted.

        Entry (a, b) of the tile is the sum of the inputs i = lo + a and j = start + b. It is a pair
        if i < j, or if i = j and ``index`` has squares. ``square`` is the weight of a square.
        """
        xp = namespace(tile)
        diagonal = lo - start
        upper_part = xp.triu(tile, k=diagonal + 1)
        if not index.squares:
            return upper_part
        return upper_part + (xp.triu(tile, k=diagonal) - upper_part) * square

    # --- sums and searches by tiles -----------------------------------------------------------

    def _cuts(self, start: int, dtype: Any) -> list[tuple[int, int]]:
        """Return the bounds (lo, hi) of consecutive groups of inputs, the first at ``start``.

        A group has the inputs lo, ..., hi - 1, the second inputs of the pairs of a tile. Its size
        is that of ``_width``, which on a device depends on the type ``dtype`` of the columns.
        """
        stop = self.shape[1]
        width = self._width(SETTINGS.tile, dtype)
        return [(lo, min(lo + width, stop)) for lo in range(start, stop, width)]

    def _run_in_threads(
        self, work: Callable[[int, int], None], index: PairIndex, dtype: Any, products: int = 1
    ) -> None:
        """Call work(lo, hi) in threads, for each group lo, ..., hi - 1 of first inputs of pairs.

        ``index`` numbers the pairs, and ``dtype`` is the type of the columns. ``products`` is the
        number of products that each group takes, from which the number of threads follows.
        """
        # At least ``shares`` groups, so that each thread has work, if they have 64 inputs or more.
        # ``n_rows`` of the ``n_inputs`` inputs are the first of a pair: without squares all but the
        # last. ``_width`` bounds the memory of a group.
        n_at_once = min(SETTINGS.tile, max(64, -(-index.n_rows // SETTINGS.shares)))
        width = self._width(n_at_once, dtype)
        starts = range(0, index.n_rows, width)

        def piece(number: int) -> None:
            """Do the work of group ``number``."""
            lo = starts[number]
            work(lo, min(lo + width, index.n_rows))

        operations = 0.5 * products * self.shape[0] * float(index.n_inputs) ** 2
        _kernels.share_out(piece, len(starts), operations, self.most_threads)

    def all_sums(self, V: Array, index: PairIndex, squared: bool = False) -> Array:
        """Return the sum over samples of every pair, (m, n_pairs), tile by tile in threads.

        The sums are sum_k v_k x_ki x_kj for each column v of V (n_samples, m), or with
        x_ki^2 x_kj^2 if ``squared``. The pairs are in the order of ``index``.
        """
        result = np.empty((V.shape[1], index.n_columns - index.n_inputs))
        read = self._reader(np.float64, 1 + squared)

        def work(lo: int, hi: int) -> None:
            """Compute the sums of pairs whose first input is in lo, ..., hi - 1."""
            # A tile X_A' diag(v) X_B has the sums of pairs of first inputs A and second inputs B.
            first_columns = read(lo, hi)
            vectors = [to_device_of(first_columns, v[:, None]) for v in V.T]
            for start, stop in self._cuts(lo, np.float64):
                right = read(start, stop)
                for v, sums in zip(vectors, result, strict=True):
                    tile = self._product((first_columns * v).T, right)
                    put_tile(to_host(tile), lo, start, index, sums)

        self._run_in_threads(work, index, np.float64, V.shape[1])
        return result

    def search(
        self, v: Array, change: Array, index: PairIndex, finalists: Finalists, square: float
    ) -> None:
        """Offer all pairs that may have one of the largest scores, tile by tile in threads.

        ``change`` is v minus the vector of the listing in ``finalists``, which receives the pairs,
        or v if there is no listing. ``index`` numbers the pairs, and ``square`` is the weight of a
        square relative to a product. The sum of a pair is at most r_i r_j with
        r_i = sqrt(sum_k |v_k| x_ki^2), so that tiles with small radii r are skipped.
        """
        dtype = np.float32 if self.uses_single() else np.float64
        read = self._reader(dtype)
        weights = v.astype(dtype)[:, None]
        radii = self._radii(np.abs(v))
        n_samples = float(self.shape[0])
        change_radii = radii if change is v else self._radii(np.abs(change))
        # Twice the error of the definition, which has no rounding in single precision.
        slack = 4.0 * (n_samples + 10.0) * 2.0**-53 * float(radii.max(initial=0.0)) ** 2

        def work(lo: int, hi: int) -> None:
            """Offer the pairs with first input in lo, ..., hi - 1 that bounds do not exclude."""
            first_columns: Any = None
            change_radius = float(change_radii[lo:hi].max())
            radius = float(radii[lo:hi].max())
            for start, stop in self._cuts(lo, dtype):
                # The largest possible change of a sum in this tile.
                bound = change_radius * float(change_radii[start:stop].max())
                multiplications = n_samples * (hi - lo) * (stop - start)
                finalists.count(possible=multiplications)
                if not bound > 0.0 or bound < finalists.least_sum(slack):
                    continue
                finalists.count(products=multiplications)
                # The first columns are read only if a tile needs them.
                if first_columns is None:
                    first_columns = read(lo, hi)
                    first_columns = (first_columns * to_device_of(first_columns, weights)).T
                tile = self._product(first_columns, read(start, stop))
                # Tiles on the diagonal also have entries with i > j.
                if start < hi:
                    tile = self._pairs_only(tile, lo, start, index, square)
                tile_radius = radius * float(radii[start:stop].max())
                self._offer(tile, lo, start, index.shift, tile_radius, radii, finalists)

        self._run_in_threads(work, index, dtype)

    def _offer(
        self,
        tile: Any,
        lo: int,
        start: int,
        shift: int,
        bound: float,
        radii: Array,
        finalists: Finalists,
    ) -> None:
        """Offer the sums in a tile that may be among the best to ``finalists``.

        Entry (a, b) of the tile is the pair (lo + a, start + b); it is one if j >= i + ``shift``.
        ``radii`` (n_inputs,) are the r_i, and ``bound`` is at least r_i r_j for all of the tile.
        """
        height, width = tile.shape
        peak = peak_of(tile)
        if not np.isfinite(peak):
            raise ValueError(
                "scores of pairs overflow: entries of X are too large for products of two "
                "columns; scale the columns of X, for example with designs.Standardized"
            )
        margin = finalists.error.relative * bound + finalists.error.absolute
        if peak < finalists.least_magnitude(margin):
            return
        # If more than ``limit`` entries are candidates, the threshold is raised to the k-th largest
        # magnitude of the tile, k = ``wanted``. The factor 1 - 4e-7 covers the rounding of a
        # comparison in single precision.
        limit = 4 * finalists.wanted + 4096
        chosen = _positions_above(tile, finalists.least_magnitude(margin))
        if chosen.size > limit or finalists.threshold == 0.0:
            if height * width >= finalists.wanted:
                magnitudes = namespace(tile).reshape(abs(tile), (-1,))
                kth = kth_largest(magnitudes, finalists.wanted)
                finalists.raise_to(kth * (1.0 - 4e-7) - margin)
            chosen = _positions_above(tile, finalists.least_magnitude(margin))
        # The inputs of the chosen entries that are pairs.
        magnitudes = _magnitudes(tile, chosen)
        i, j = np.divmod(chosen, width)
        i = i + lo
        j = j + start
        pairs = j >= i + shift
        i = i[pairs]
        j = j[pairs]
        finalists.offer(i, j, magnitudes[pairs], radii[i] * radii[j])

    def _radii(self, weights: Array) -> Array:
        """Return r_i >= sqrt(sum_k |v_k| x_ki^2) of each input i, for ``weights`` |v| (n_samples,).

        The bound is tight if it is above 1e-100.
        """
        with np.errstate(over="ignore"):
            norms = self.base.squared_norms(weights)
        # Norms below this value may have lost squares to underflow.
        radii: Array = np.sqrt(np.maximum(norms, 1e-200)) * SETTINGS.inflation
        return radii


def peak_of(values: Any) -> float:
    """Return the largest magnitude of ``values``, an array or tensor.

    It is 0 if there are none, and NaN if one is NaN.
    """
    xp = namespace(values)
    if 0 in values.shape:
        return 0.0
    return max(float(to_host(xp.max(values))), -float(to_host(xp.min(values))))


def _positions_above(tile: Any, least: float) -> Columns:
    """Return the flat positions of entries of a tile with magnitude >= ``least``."""
    xp = namespace(tile)
    is_reached = xp.reshape(abs(tile) >= least, (-1,))
    return np.array(to_host(xp.nonzero(is_reached)[0]), dtype=np.int64)


def _magnitudes(tile: Any, positions: Columns) -> NDArray[Any]:
    """Return the magnitudes of a tile at these flat positions, as an array on the processor."""
    xp = namespace(tile)
    magnitudes = xp.take(xp.reshape(tile, (-1,)), to_device_of(tile, positions))
    return np.array(to_host(abs(magnitudes)))
