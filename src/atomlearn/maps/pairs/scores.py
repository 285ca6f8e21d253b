"""Scores of all pairwise products of inputs: all computed if they are few, else top-k search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from atomlearn.core import Array, ArrayScores, Columns, Scores
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.products import PairProducts
from atomlearn.maps.pairs.search import Finalists, Listing, PairWork
from atomlearn.maps.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Scaling:
    """Factors by which columns are multiplied: x_j (linear), x_j^2 (square), x_i x_j (pair)."""

    linear: float
    square: float
    pair: float

    def of(self, i: Columns, j: Columns) -> Array:
        """Return the factor of the column x_i x_j for each pair of i and j; j = -1 means x_i."""
        return np.where(j < 0, self.linear, np.where(i == j, self.square, self.pair))


def can_be_listed(index: PairIndex) -> bool:
    """Return whether an array with one entry for each column of ``index`` fits into memory."""
    return index.n_columns <= SETTINGS.most_listed


class PolynomialScores(Scores):
    """z = Phi'v for the degree-2 map Phi of a design: computed by ``full``, or only searched.

    A score is defined as sum_k v_k (x_ki x_kj), summed in float64 for this one column. ``at``
    computes the score of a column in O(n_samples), and ``top`` finds the columns with the largest
    scores exactly. After ``full``
    was computed, all answers come from it, and may differ from earlier ones by rounding.

    Parameters
    ----------
    pairs : PairProducts
        The products of two inputs.
    index : PairIndex
        Numbering of the columns.
    scaling : Scaling
        Factors of the columns.
    v : (n_samples,) array
        The vector; it is copied.
    memory : Memory
        Results that the searches of one design share.

    Attributes
    ----------
    work : PairWork or None
        Work that the last search of ``top`` did and skipped; None if there was no search. Its
        result is ``_best``; the scores of the inputs are ``_linear``.
    """

    def __init__(
        self, pairs: PairProducts, index: PairIndex, scaling: Scaling, v: Array, memory: Memory
    ) -> None:
        """Copy v, and compute the scores of the inputs; other scores are computed on request."""
        self._pairs = pairs
        self._index = index
        self._scaling = scaling
        self._v = np.array(v, dtype=np.float64)
        self._linear = pairs.linear(self._v) * scaling.linear
        self._memory = memory
        self._full: ArrayScores | None = None
        self._best: tuple[Columns, Array] | None = None
        self.work: PairWork | None = None
        self.n_columns = self._index.n_columns

    def full(self) -> Array:
        """Return all of z, shape (n_columns,), at most 2^28: n d^2 multiplications, once."""
        if self._full is None:
            # The method of ``Scores`` raises an error with a remedy.
            if not can_be_listed(self._index):
                return super().full()
            Z = all_scores(
                self._pairs, self._linear[None, :], self._index, self._scaling, self._v[:, None]
            )
            self._full = ArrayScores(Z[0])
        return self._full.full()

    def at(self, columns: Columns) -> Array:
        """Return the scores of these columns by their definition, or from the list of all."""
        columns = np.asarray(columns, dtype=np.int64)
        self._list_if_cheaper(columns.size)
        if self._full is not None:
            return self._full.at(columns)
        return self._products(columns)

    def _list_if_cheaper(self, count: int) -> None:
        """Compute all scores if that takes less time than ``count`` single scores.

        A single score takes about 16 times as long as one of all. If all scores take about a
        millisecond, they are computed in any case.
        """
        if self._full is None and can_be_listed(self._index):
            work = 0.5 * self._v.size * float(self._index.n_inputs) ** 2
            if 16 * count > self.n_columns or (work < SETTINGS.small_work and count > 0):
                self.full()

    def _products(self, columns: Columns) -> Array:
        """Return the scores of these columns by their definition, in O(n_samples) each."""
        i, j = self._index.pairs(columns)
        z = np.empty(columns.size)
        linear = j < 0
        z[linear] = self._linear[i[linear]]
        first = i[~linear]
        second = j[~linear]
        z[~linear] = self._pairs.sums(self._v, first, second) * self._scaling.of(first, second)
        return z

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the columns of largest \\|z_j\\|, exactly, with their z_j.

        Sums of tiles, or of pairs of sparse columns with common rows, are compared with a running
        threshold; memory is O(count + d) and a tile. See ``pairs.search``.
        """
        count = min(int(count), self.n_columns)
        if count <= 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        size = float(np.abs(self._v).max())
        if not math.isfinite(size):
            raise ValueError("v holds NaN or infinity: check the data and the predictions")
        self._list_if_cheaper(count)
        if self._full is not None:
            return self._full.top(count)
        if self._best is None or self._best[0].size < count:
            self._best = self._searched(count, size)
        columns, values = self._best
        return columns[:count].copy(), values[:count].copy()

    def _searched(self, count: int, size: float) -> tuple[Columns, Array]:
        """Return the ``count`` columns of largest |score| and their scores, by a search.

        ``size`` is the largest |v_k|.
        """
        index = self._index
        memory = self._memory
        v = self._v
        # v is divided by the next power of two, which causes no rounding, so that |v_k| <= 1.
        unit = 2.0 ** math.frexp(size)[1] if size > 0 else 1.0
        # The best pairs of an earlier vector (its listing): the ``count``-th largest of their
        # present scores is a lower bound on the ``count``-th largest of all scores.
        listed = self._products(memory.listing.columns)
        magnitudes = np.abs(listed) * (1.0 - 1e-12)
        change, before = memory.change(v, _largest(magnitudes, count))
        # A search of all pairs finds more than ``count`` and stores them as the next listing. Then
        # all pairs that are not listed are far below the best.
        n_best = count if before else count + min(SETTINGS.listing * count, SETTINGS.spare)
        finalists = Finalists(
            n_best,
            index,
            self._products,
            self._linear,
            self._scaling.pair * unit,
            self._pairs.error(),
            _largest(magnitudes, n_best),
            before,
            listed,
        )
        # The search sums products for a vector with entries up to 1, so that sums are in units of
        # ``unit``, and of the factor of a pair.
        square = self._scaling.square / self._scaling.pair
        self._pairs.search(v / unit, change / unit, index, finalists, square)
        if before is None:
            memory.listing = finalists.listing(v)
        columns, values = finalists.best(count)
        self.work = finalists.work
        memory.work.add(finalists.work)
        return columns, values


@dataclass(slots=True)
class Memory:
    """Results that searches of one design share: their work, and the best pairs of one of them.

    ``work`` counts the products of all searches. ``listing`` has the pairs with the largest
    scores in magnitude for one vector v, and a bound on all others. It only saves work: the result
    of a search does not depend on it.
    """

    work: PairWork = field(default_factory=lambda: PairWork(0.0, 0.0))
    listing: Listing = field(default_factory=Listing.nothing)

    def change(self, v: Array, least: float) -> tuple[Array, Listing | None]:
        """Return (change of v, listing) for a search with the listing, else (v, None).

        v (n_samples,) is the vector of the search. ``least`` is a magnitude that enough of its
        scores are known to reach. A search of all pairs skips products by bounds that grow with
        sum |v_k|. They are compared with its final threshold, which is about the bound of the
        listing, as it lists as many pairs. With the listing, the bounds grow with sum |change_k|,
        and are compared with ``least`` minus the bound of the listing. The ratio of both numbers
        decides the cost. So the listing is used if it halves this ratio; else all pairs are
        searched and listed anew.
        """
        listing = self.listing
        if not (listing.columns.size and least > listing.least):
            return v, None
        change = v - listing.v
        distance = float(np.abs(change).sum())
        missing = least - listing.least
        if 2.0 * distance * listing.least > float(np.abs(v).sum()) * missing:
            return v, None
        return change, listing


def _largest(sizes: Array, count: int) -> float:
    """Return the ``count``-th largest of ``sizes``, or 0 if there are fewer."""
    if sizes.size < count:
        return 0.0
    return float(np.partition(sizes, sizes.size - count)[sizes.size - count])


def all_scores(
    pairs: PairProducts, linear: Array, index: PairIndex, scaling: Scaling, V: Array
) -> Array:
    """Return the scores of all columns for each of m vectors, (m, n_columns).

    The vectors are the columns of V (n_samples, m). ``pairs`` computes the products, and
    ``linear`` (m, d) are the scores of the inputs, which are scaled already. ``index`` numbers
    the columns, and ``scaling`` has their factors.
    """
    Z = np.empty((V.shape[1], index.n_columns))
    Z[:, : index.n_inputs] = linear
    Z[:, index.n_inputs :] = pairs.all_sums(V, index)
    for z in Z:
        scale_pairs(z, index, scaling)
    return Z


def scale_pairs(values: Array, index: PairIndex, scaling: Scaling, power: int = 1) -> None:
    """Multiply the values of pairs and squares by their factors to a power, in place.

    ``values`` (n_columns,) has one number for each column, in the order of ``index``, and
    ``scaling`` has the factors. The inputs are scaled already.
    """
    pairs = values[index.n_inputs :]
    if scaling.pair != 1.0:
        pairs *= scaling.pair**power
    if index.squares and scaling.square != scaling.pair:
        # The first pair of input i is its square.
        squares = index.starts(np.arange(index.n_rows)) - index.n_inputs
        pairs[squares] *= (scaling.square / scaling.pair) ** power
