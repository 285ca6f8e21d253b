"""Exact top-k search among all pairs, from approximate scores with rounding error bounds.

Blocks (tiles) of scores are computed fast, in single precision or in another order of summation.
Each has an error bound, so that a pair whose upper bound is below the k-th largest lower bound so
far cannot be among the best k. The scores of the remaining pairs, the finalists, are recomputed in
float64.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, Columns
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.settings import SETTINGS
from atomlearn.storage.device.tensors import BUDGET


@dataclass(slots=True)
class PairWork:
    """Number of products that searches formed, and ``possible``, the number without any bounds."""

    products: float
    possible: float

    def add(self, other: PairWork) -> None:
        """Add the counts of ``other``, another search."""
        self.products += other.products
        self.possible += other.possible


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """\\|computed - exact\\| <= relative * r_i * r_j + absolute, if max_k \\|v_k\\| <= 1.

    This bounds the error of the sum of a pair (i, j), with r_i = sqrt(sum_k |v_k| x_ki^2).

    Attributes
    ----------
    relative : float
        gamma_m = m u / (1 - m u) for m roundings of each term, u the unit roundoff. It bounds the
        error relative to sum_k |v_k x_ki x_kj| <= r_i r_j, for any order of summation (Higham 2002,
        Accuracy and Stability of Numerical Algorithms, section 3.1).
    absolute : float
        Bound on underflow.
    """

    relative: float
    absolute: float

    @classmethod
    def of(cls, n_samples: int, largest: float, single: bool) -> ErrorBound:
        """Return the error bound of tiles on the processor, plus the one of scores by definition.

        The sums have ``n_samples`` terms. ``largest`` is the largest |x_ki|, and ``single``
        whether tiles are in single precision.
        """
        # u is 2^-53 in double and 2^-24 in single precision; 2^-1022 and 2^-126 are the smallest
        # normal numbers. There are ten more roundings: casts of x_i, x_j and v, the product,
        # scales, and comparisons.
        double = 2.0 * (n_samples + 10) * 2.0**-53
        least = n_samples * 2.0**-1022 * (1.0 + largest + largest * largest)
        if not single:
            return cls(double, least)
        terms = min(n_samples, BUDGET.single_terms) + 10
        least = n_samples * 2.0**-126 * (1.0 + largest + largest * largest)
        # The factor 1.01 is more than 1 / (1 - m u).
        return cls(1.01 * terms * 2.0**-24 + double, least)


@dataclass(frozen=True, slots=True)
class Listing:
    """The best pairs for one vector v and a bound on all others, to start searches for a nearby v'.

    By the triangle inequality, |sum_k v'_k p_k| <= |sum_k v_k p_k| + |sum_k (v'_k - v_k) p_k| for
    every product p of two columns.

    Attributes
    ----------
    v : array
        The vector.
    columns : array of int64
        The pairs, in increasing order.
    least : float
        No other pair has a larger score.
    """

    v: Array
    columns: Columns
    least: float

    @classmethod
    def nothing(cls) -> Listing:
        """Return the listing without pairs, of v = 0: all scores are 0."""
        return cls(np.zeros(0), np.zeros(0, dtype=np.int64), 0.0)


class Finalists:
    """Candidates for the ``count`` columns with the largest absolute scores; thread-safe.

    Parameters
    ----------
    count : int
        Number of columns to find.
    index : PairIndex
        Numbering of the columns.
    rescore : callable
        Returns the scores of columns, by definition.
    values : array
        Scores of the inputs, which are known.
    scale : float
        Factor from sums over pairs to scores.
    error : ErrorBound
        Bound on the errors of sums that will be offered.
    least : float
        Magnitude that at least ``count`` columns are known to have.
    before, listed : Listing and array, optional
        The best pairs of an earlier vector, and their scores for the present one. A pair that is
        not listed can be among the best only because of the change of the vector.

    Attributes
    ----------
    threshold : float
        A lower bound on the count-th largest magnitude, which only rises.
    wanted : int
        ``count``.
    """

    def __init__(
        self,
        count: int,
        index: PairIndex,
        rescore: Callable[[Columns], Array],
        values: Array,
        scale: float,
        error: ErrorBound,
        least: float = 0.0,
        before: Listing | None = None,
        listed: Array | None = None,
    ) -> None:
        """Start with the inputs, and with the pairs of an earlier listing, as candidates."""
        self.wanted = count
        self.scale = scale
        self.error = error
        self.index = index
        self.threshold = least
        self.work = PairWork(0.0, 0.0)
        if np.isnan(values).any():
            raise ValueError("scores are NaN: check the data and the weights they come from")
        self._rescore = rescore
        self._lock = threading.Lock()
        self._limit = 2 * count + SETTINGS.spare
        self._before = before or Listing.nothing()
        # For each candidate: its column, its score (NaN if not yet computed exactly), and lower and
        # upper bounds on the magnitude of its score. Scores of inputs are exact.
        magnitudes = np.abs(values)
        self._columns = np.flatnonzero((magnitudes >= least) & (magnitudes > 0))
        self._values = values[self._columns]
        self._upper = self._lower = magnitudes[self._columns]
        self._shrink()
        if before is not None and listed is not None:
            self._add(before.columns, listed, np.abs(listed), np.abs(listed))

    def least_sum(self, slack: float = 0.0) -> float:
        """Return the least |sum_k (v'_k - v_k) p_k| with which an unlisted pair p is a candidate.

        v is the vector of the listing and v' the present one; without a listing v = 0. ``slack`` is
        a bound on the rounding of sums by the definition, now and when pairs were listed.
        """
        # An unlisted pair had a score of at most ``_before.least``; the change must add the rest.
        missing = self.threshold * (1.0 - 1e-12) - self._before.least
        return max(0.0, missing / self.scale - slack)

    def listing(self, v: Array) -> Listing:
        """Return the remaining pairs as the listing of the vector v, with a bound on all others."""
        self._shrink()
        pairs = self._columns[self._columns >= self.index.n_inputs]
        return Listing(v, np.sort(pairs), self.threshold)

    def least_magnitude(self, margin: float) -> float:
        """Return the least computed |sum| with which a pair is a candidate.

        ``margin`` bounds the error of the sum.
        """
        # Slightly smaller, because it is compared in single precision.
        return max(0.0, (self.threshold / self.scale - margin) * (1.0 - 4e-7))

    def count(self, *, products: float = 0.0, possible: float = 0.0) -> None:
        """Add to the counts of work: ``products`` formed, and products ``possible`` without bounds.

        Both are numbers of multiplications.
        """
        with self._lock:
            self.work.products += products
            self.work.possible += possible

    def raise_to(self, magnitude: float) -> None:
        """Raise the threshold: at least ``count`` exact sums have ``magnitude`` or more."""
        with self._lock:
            self.threshold = max(self.threshold, self.scale * magnitude)

    def offer(self, i: Columns, j: Columns, magnitudes: NDArray[np.floating], sizes: Array) -> None:
        """Add the pairs (i, j) whose upper bounds reach the threshold.

        ``magnitudes`` are their computed |sums|, and ``sizes`` the products r_i r_j that the error
        bound takes, all of shape (m,).
        """
        sums = magnitudes.astype(np.float64) * self.scale
        errors = self.error.relative * sizes + self.error.absolute
        errors *= self.scale * (sizes > 0)
        # Pairs of the listing are candidates already, with their exact scores.
        upper = sums + errors
        keep = np.flatnonzero((upper >= self.threshold) & (upper > 0))
        columns = self.index.columns(i[keep], j[keep])
        if self._before.columns.size:
            new = ~np.isin(columns, self._before.columns)
            keep = keep[new]
            columns = columns[new]
        lower = np.maximum(sums[keep] - errors[keep], 0.0)
        self._add(columns, np.full(columns.size, np.nan), upper[keep], lower)

    def _add(self, columns: Columns, values: Array, upper: Array, lower: Array) -> None:
        """Add candidate ``columns``, their ``values`` and bounds on the magnitudes; thread-safe.

        A value is NaN if it is not yet computed exactly; its magnitude is between ``lower``
        and ``upper``. Candidates that cannot be among the best are dropped.
        """
        if not columns.size:
            return
        with self._lock:
            self._columns = np.concatenate([self._columns, columns])
            self._values = np.concatenate([self._values, values])
            self._upper = np.concatenate([self._upper, upper])
            self._lower = np.concatenate([self._lower, lower])
            self._shrink()
            # The number of candidates, and so the memory, is bounded.
            if self._columns.size > self._limit:
                self._rescore_and_rank()

    def _keep(self, keep: NDArray[np.bool_] | Columns) -> None:
        """Keep only the candidates ``keep``, a mask or positions in their new order."""
        self._columns = self._columns[keep]
        self._values = self._values[keep]
        self._upper = self._upper[keep]
        self._lower = self._lower[keep]

    def _shrink(self) -> None:
        """Raise the threshold to the count-th largest lower bound; drop pairs below it."""
        rank = self._lower.size - self.wanted
        if rank >= 0:
            self.threshold = max(self.threshold, float(np.partition(self._lower, rank)[rank]))
            self._keep(self._upper >= self.threshold)

    def _rescore_and_rank(self) -> None:
        """Compute the scores of all candidates exactly, and keep the best in order.

        This bounds memory even if very many pairs are tied. ``wanted`` is the number of the best.
        """
        unknown = np.flatnonzero(np.isnan(self._values))
        self._values[unknown] = self._rescore(self._columns[unknown])
        if np.isnan(self._values).any():
            raise ValueError("scores are NaN: check the data and the weights they come from")
        magnitudes = np.abs(self._values)
        order = np.lexsort((self._columns, -magnitudes))[: self.wanted]
        order = order[magnitudes[order] > 0]
        self._upper = self._lower = magnitudes
        self._keep(order)
        if order.size == self.wanted:
            self.threshold = max(self.threshold, float(self._lower[-1]))

    def best(self, count: int) -> tuple[Columns, Array]:
        """Return the best ``count`` columns and their scores, largest first.

        In ties the smaller column comes first. If there are too few, the smallest columns of score
        zero are added.
        """
        self.wanted = count
        self._shrink()
        self._rescore_and_rank()
        columns = self._columns
        values = self._values
        missing = self.wanted - columns.size
        if missing > 0:
            candidates = np.arange(min(self.index.n_columns, self.wanted), dtype=np.int64)
            zeros = np.setdiff1d(candidates, columns)[:missing]
            columns = np.concatenate([columns, zeros])
            values = np.concatenate([values, np.zeros(zeros.size)])
        return columns, values
