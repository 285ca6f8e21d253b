"""The search for the largest sums_k v_k x_ki x_kj over pairs of columns (i, j).

Bounds of every column exclude most of them; the rest is summed row by row, and only pairs
that meet in a row are ever formed. Arrays must have passed ``sparse_fault``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions

#: Pairs found at a time, beyond one for each column.
FOUND_AT_A_TIME = 2**16
#: An array in CSC or CSR: data, indices and indptr.
Compressed = tuple[Data, Indices, Indices]
#: Entries with their positions, where each row begins, and its length.
Table = tuple[NDArray[np.uint8], Positions, NDArray[np.int32]]
#: The first position not done, the columns of the pairs that matter, their sums, multiplications.
Found = tuple[int, Positions, Positions, Array, int]


def pair_bounds_csc(
    data: Data,
    indices: Indices,
    indptr: Indices,
    v: Data,
    low: Data,
    high: Data,
    columns: Positions | None = None,
) -> tuple[Array, Array, Array]:
    """(upper, rising, falling) of columns of X in CSC, with the extremes of its rows.

    upper_i = max(sum_k max_x (v_k x_ki x)_+, sum_k max_x (v_k x_ki x)_-) over x in
    [low_k, high_k]: no |sum_k v_k x_ki x_kj| is larger. rising_i >= sqrt(sum_k (v_k)_+ x_ki^2),
    falling_i >= sqrt(sum_k (v_k)_- x_ki^2): by 1e-100 for what underflows, infinite where squares
    overflow.
    """
    packed = np.empty((v.size, 3))
    packed[:, 0] = v
    with np.errstate(over="ignore"):
        np.multiply(v, high, out=packed[:, 1])
        np.multiply(v, low, out=packed[:, 2])
    size = indptr.size - 1 if columns is None else columns.size
    upper, rising, falling = np.empty((3, size))
    _native.pair_bounds(data, indices, indptr, columns, packed, upper, rising, falling)
    return upper, rising, falling


def pair_rows(rows: Compressed, place: NDArray[np.int32], count: int) -> tuple[Table, Array]:
    """Return X in CSR with its columns in another order, and the cost of the pairs of each.

    place : the position of each column in that order, -1 of those left out; costs : (count,)
    entries that the pairs of a position with those before it read.
    """
    entry = _native.pair_entry_size(rows[0].dtype == np.float32)
    costs = np.empty(count)
    n_rows = rows[2].size - 1
    table = (
        np.empty(rows[0].size * entry, dtype=np.uint8),
        np.empty(n_rows, dtype=np.int64),
        np.empty(n_rows, dtype=np.int32),
    )
    _native.pair_rows(*rows, place, *table, costs)
    return table, costs


def pair_search(
    columns: Compressed,
    table: Table,
    order: Positions,
    v: Array,
    reaches: Array,
    upper: Array,
    sizes: Array,
    costs: Array,
) -> Callable[..., Found]:
    """Return ``between``, which searches some of the pairs.

    X is given twice, in CSC and in rows of positions. For the first positions, (m,): order : their
    columns; reaches, upper : what decides which pairs are summed; sizes : |s_ab| <= sizes_a.

    between(begin, end, enough, threshold, relative, absolute, square, shift) searches positions a
    in [begin, end) with all b <= a - shift where reaches_a reaches_b >= enough and
    upper_a >= enough. A sum matters where its magnitude, ``square`` times that for b = a, is
    threshold - relative sizes_a - absolute or more. It ends before ``end`` where very much was
    found.
    """
    size = order.size
    if any(each.size != size for each in (reaches, upper, sizes, costs)):
        raise ValueError("order, reaches, upper, sizes and costs must be of one size")
    if v.size != table[1].size:
        raise ValueError("v must be of the size of a column")
    peaks = np.maximum.accumulate(reaches[::-1])[::-1].copy()
    given = *columns, *table, order, v, reaches, peaks, upper, sizes, costs

    def between(begin: int, end: int, *limits: float) -> Found:
        first, second = np.empty((2, size + FOUND_AT_A_TIME), dtype=np.int32)
        found = np.empty(first.size)
        following, number, products = _native.pair_search(
            *given, begin, end, *limits, first, second, found
        )
        pairs = order[first[:number]], order[second[:number]]
        return following, *pairs, found[:number].copy(), products

    return between
