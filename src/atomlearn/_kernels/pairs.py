"""The search for the largest sums_k v_k x_ki x_kj over pairs of columns (i, j).

Bounds of every column exclude most of them; what is left is summed row by row, and only pairs
that meet in a row are ever formed. Arrays must have passed ``sparse_fault``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._checks as _checks
import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions
from atomlearn._kernels.sparse import _arrays

#: Pairs found at a time, beyond one for each column.
FOUND_AT_A_TIME = 2**16


def pair_bounds_csc(
    data: Data,
    indices: Indices,
    indptr: Indices,
    v: Data,
    low: Data,
    high: Data,
    columns: object | None = None,
) -> tuple[Array, Array, Array]:
    """(upper, rising, falling) of columns of X in CSC, with the extremes of its rows.

    upper_i = max(sum_k max_x (v_k x_ki x)_+, sum_k max_x (v_k x_ki x)_-) over x in
    [low_k, high_k]: no |sum_k v_k x_ki x_kj| is larger. rising_i = sqrt(sum_k (v_k)_+ x_ki^2),
    falling_i = sqrt(sum_k (v_k)_- x_ki^2), without overflow.
    """
    arrays = _arrays(data, indices, indptr)
    n_rows, n_columns = np.size(v), arrays[2].size - 1
    weights = _checks.weights(v, "v", n_rows)
    subset = _checks.optional_positions(columns, "columns", n_columns)
    packed = np.empty((n_rows, 3))
    packed[:, 0] = weights
    with np.errstate(over="ignore"):
        np.multiply(weights, _checks.weights(high, "high", n_rows), out=packed[:, 1])
        np.multiply(weights, _checks.weights(low, "low", n_rows), out=packed[:, 2])
    size = n_columns if subset is None else subset.size
    upper, rising, falling = np.empty(size), np.empty(size), np.empty(size)
    _native.pair_bounds(*arrays, subset, packed, upper, rising, falling)
    return upper, rising, falling


@dataclass(frozen=True, slots=True)
class PairLimits:
    """A sum matters where its magnitude reaches threshold - relative r_i r_j - absolute.

    square : factor of the sums of squares; squares : whether they are pairs.
    """

    threshold: float
    relative: float
    absolute: float
    square: float
    squares: bool


@dataclass(slots=True)
class PairScratch:
    """What one thread needs while it searches; zero between calls."""

    sums: Array
    touched: NDArray[np.int32]
    seen: NDArray[np.uint8]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    found: Array

    @classmethod
    def of(cls, count: int) -> PairScratch:
        """Return scratch for so many columns."""
        room = count + FOUND_AT_A_TIME
        return cls(
            np.zeros(count),
            np.empty(count, dtype=np.int32),
            np.zeros(count, dtype=np.uint8),
            np.empty(room, dtype=np.int32),
            np.empty(room, dtype=np.int32),
            np.empty(room),
        )


@dataclass(frozen=True, slots=True)
class PairSearch:
    """Columns of X in CSC, in the order of decreasing radii, and their entries by rows.

    radii : (m,) decreasing, with |s_ij| <= r_i r_j; upper : (m,) with |s_ij| <= upper_i;
    costs : (m,) entries that the pairs of a column with those before it read.
    """

    columns: tuple[Data, Indices, Indices] = field(repr=False)
    order: Positions
    v: Array
    radii: Array
    upper: Array
    costs: Array = field(repr=False)
    rows: tuple[NDArray[np.uint8], Positions, NDArray[np.int32]] = field(repr=False)

    @classmethod
    def of(
        cls,
        columns: tuple[Data, Indices, Indices],
        rows: tuple[Data, Indices, Indices],
        order: object,
        v: Data,
        radii: Data,
        upper: Data,
    ) -> PairSearch:
        """Return the search over columns ``order``, with one radius and bound for each of them.

        X is given twice: data, indices and indptr in CSC and in CSR.
        """
        by_columns, by_rows = _arrays(*columns), _arrays(*rows)
        n_columns, n_rows = by_columns[2].size - 1, by_rows[2].size - 1
        if by_columns[0].dtype != by_rows[0].dtype or by_columns[0].size != by_rows[0].size:
            raise ValueError("columns and rows must be the same array, in CSC and in CSR")
        chosen = _checks.positions(order, "order", n_columns)
        if chosen.size > np.iinfo(np.int32).max:
            raise ValueError(f"pairs of at most 2^31 - 1 columns are searched, got {chosen.size}")
        weights = _checks.weights(v, "v", n_rows)
        sizes = _checks.weights(radii, "radii", chosen.size)
        if (sizes[1:] > sizes[:-1]).any():
            raise ValueError("radii must decrease; sort the columns by them")
        place = np.full(n_columns, -1, dtype=np.int32)
        place[chosen] = np.arange(chosen.size, dtype=np.int32)
        entry = _native.pair_entry_size(by_rows[0].dtype == np.float32)
        table = (
            np.empty(by_rows[0].size * entry, dtype=np.uint8),
            np.empty(n_rows, dtype=np.int64),
            np.empty(n_rows, dtype=np.int32),
        )
        costs = np.empty(chosen.size)
        _native.pair_rows(*by_rows, place, weights, *table, costs)
        bounds = _checks.weights(upper, "upper", chosen.size)
        return cls(by_columns, chosen, weights, sizes, bounds, costs, table)

    def between(
        self, begin: int, end: int, limits: PairLimits, scratch: PairScratch
    ) -> tuple[int, Positions, Positions, Array, Positions]:
        """Search positions a in [begin, end) with all b <= a (b < a without squares).

        Returns the first position not done (``end``, unless very much was found), the columns of
        the pairs that matter, their sums, and [multiplications, sums formed, columns searched].
        """
        if not 0 <= begin <= end <= self.order.size:
            raise ValueError(f"positions must lie in [0, {self.order.size}], got {begin}, {end}")
        if scratch.sums.size != self.order.size:
            raise ValueError(
                f"scratch must be for {self.order.size} columns, got {scratch.sums.size}; use "
                "PairScratch.of"
            )
        counts = np.zeros(3, dtype=np.int64)
        following, size = _native.pair_search(
            *self.columns, self.order, *self.rows, self.v, self.radii, self.upper, self.costs,
            limits.threshold, limits.relative, limits.absolute, limits.square,
            0 if limits.squares else 1, begin, end, scratch.sums, scratch.touched,
            scratch.seen, scratch.first, scratch.second, scratch.found, counts,
        )  # fmt: skip
        first, second = self.order[scratch.first[:size]], self.order[scratch.second[:size]]
        return following, first, second, scratch.found[:size].copy(), counts
