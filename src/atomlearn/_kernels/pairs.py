"""The search for the largest sums_k v_k x_ki x_kj over pairs of columns (i, j).

Bounds of every column exclude most of them; what is left is summed row by row, and only pairs
that meet in a row are ever formed. Arrays must have passed ``sparse_fault``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions

#: Pairs found at a time, beyond one for each column.
FOUND_AT_A_TIME = 2**16
#: An array in CSC or CSR: data, indices and indptr.
Compressed = tuple[Data, Indices, Indices]
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
    [low_k, high_k]: no |sum_k v_k x_ki x_kj| is larger. rising_i = sqrt(sum_k (v_k)_+ x_ki^2),
    falling_i = sqrt(sum_k (v_k)_- x_ki^2), without overflow.
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


def pair_search(
    columns: Compressed, rows: Compressed, order: Positions, v: Array, radii: Array, upper: Array
) -> tuple[Array, Callable[..., Found]]:
    """Return what the pairs of each column cost, and ``between``, which searches some of them.

    X is given twice, in CSC and in CSR. Columns come in the ``order`` of decreasing radii, with
    |s_ij| <= r_i r_j and |s_ij| <= upper_i; costs : (m,) entries that the pairs of a column with
    those before it read.

    between(begin, end, threshold, relative, absolute, square, shift) searches positions a in
    [begin, end) with all b <= a - shift. A sum matters where its magnitude, ``square`` times that
    for b = a, reaches threshold - relative r_i r_j - absolute. It ends before ``end`` where very
    much was found.
    """
    size, n_rows = order.size, rows[2].size - 1
    if size > np.iinfo(np.int32).max:
        raise ValueError(f"pairs of at most 2^31 - 1 columns are searched, got {size}")
    if radii.size != size or upper.size != size or v.size != n_rows:
        raise ValueError("order, radii and upper must be of one size, v of that of a column")
    place = np.full(columns[2].size - 1, -1, dtype=np.int32)
    place[order] = np.arange(size, dtype=np.int32)
    entry, costs = _native.pair_entry_size(rows[0].dtype == np.float32), np.empty(size)
    table = (
        np.empty(rows[0].size * entry, dtype=np.uint8),
        np.empty(n_rows, dtype=np.int64),
        np.empty(n_rows, dtype=np.int32),
    )
    _native.pair_rows(*rows, place, v, *table, costs)
    given = *columns, order, *table, v, radii, upper, costs

    def between(begin: int, end: int, *limits: float) -> Found:
        first, second = np.empty((2, size + FOUND_AT_A_TIME), dtype=np.int32)
        found = np.empty(first.size)
        following, number, products = _native.pair_search(
            *given, *limits, begin, end, first, second, found
        )
        pairs = order[first[:number]], order[second[:number]]
        return following, *pairs, found[:number].copy(), products

    return costs, between
