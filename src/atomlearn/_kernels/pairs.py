"""Search for the largest interaction scores s_ij = sum_k v_k x_ki x_kj of a sparse matrix X.

v (n_rows,) has one number per row, and (i, j) is a pair of columns of X. Upper bounds for each
column exclude most pairs (branch and bound). The scores of the other pairs are added up row by row,
so that only pairs of columns with a common nonzero row are ever formed. Arrays must have passed
``sparse_fault``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import atomlearn._kernels._native as _native
from atomlearn._kernels._checks import Array, Data, Indices, Positions

#: Number of pairs for which the output arrays have space, in addition to one pair per column.
FOUND_AT_A_TIME = 2**16
#: A matrix in CSC or CSR format: data, indices and indptr.
Compressed = tuple[Data, Indices, Indices]
#: X row by row: packed (value, position) entries, the start of each row, and its length.
Table = tuple[NDArray[np.uint8], Positions, NDArray[np.int32]]
#: Results of a search: the first position that was not searched, the columns i and j of the pairs
#: found, their scores, and the number of multiplications.
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
    """Return three bounds per column i of X for its scores s_ij = sum_k v_k x_ki x_kj.

    With (a)_+ = max(a, 0) and (a)_- = max(-a, 0), the bounds, one number per column each, are

        upper_i = max(sum_k max_x (v_k x_ki x)_+, sum_k max_x (v_k x_ki x)_-), x in [low_k, high_k]
        rising_i >= sqrt(sum_k (v_k)_+ x_ki^2)
        falling_i >= sqrt(sum_k (v_k)_- x_ki^2)

    The first bounds |s_ij| for every j. The others bound it by Cauchy-Schwarz; they are raised by
    1e-100 to cover underflow, and are infinite if squares overflow.

    Parameters
    ----------
    data, indices, indptr : X in CSC format
    v : (n_rows,)
    low, high : (n_rows,)
        Bounds on the entries of each row of X.
    columns : int64, optional
        The columns to bound; None: all.
    """
    # For each row: v, and the products of v with the largest and the smallest entry.
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
    """Return X row by row with permuted columns, and the cost of a search for each column.

    Parameters
    ----------
    rows : Compressed
        X in CSR format.
    place : (n_columns,) int32
        The position of each column in the new order, -1 for a column that is left out.
    count : int
        Number of columns that remain.

    Returns
    -------
    table : Table
    costs : (count,)
        The number of entries that are read to pair the column at a position with all columns at
        earlier positions.
    """
    entry_bytes = _native.pair_entry_size(rows[0].dtype == np.float32)
    costs = np.empty(count)
    n_rows = rows[2].size - 1
    # Packed entries of all rows, the start of each row, and its length: filled by the kernel.
    table = (
        np.empty(rows[0].size * entry_bytes, dtype=np.uint8),
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
    """Return a function ``between`` that finds pairs of columns with large scores.

    The score of the columns at positions a and b is s_ab = sum_k v_k x_ka x_kb.

    ``between(begin, end, enough, threshold, relative, absolute, square, shift)`` searches the
    positions a in [begin, end) and b <= a - shift. It skips pairs whose bounds reaches_a reaches_b
    or upper_a are below ``enough``. It returns the pairs with

        |s_ab| >= threshold - relative * sizes_a - absolute,

    where ``relative`` and ``absolute`` allow for rounding, and |s_aa| is first multiplied by
    ``square``. If the output is full, the search ends before ``end``; the first element of
    ``Found`` is the position from which to continue.

    Parameters
    ----------
    columns : Compressed
        X in CSC format.
    table : Table
        X row by row with permuted columns (``pair_rows``).
    order : (m,) int64
        The column at each of the m leading positions of the new order, as all arrays below.
    v : (n_rows,)
    reaches : (m,)
        Bounds with |s_ab| <= reaches_a reaches_b (Cauchy-Schwarz).
    upper : (m,)
        Bounds with |s_ab| <= upper_a for every b.
    sizes : (m,)
        sum_k |x_ka| max_j |x_kj|, to which the rounding error of s_ab is relative.
    costs : (m,)
        The number of entries that are read for each position.
    """
    size = order.size
    if any(array.size != size for array in (reaches, upper, sizes, costs)):
        raise ValueError("order, reaches, upper, sizes and costs must be of one size")
    if v.size != table[1].size:
        raise ValueError("v must be of the size of a column")
    # peaks_a is the largest of reaches_a, reaches_(a+1), ..., so it bounds all later positions.
    peaks = np.maximum.accumulate(reaches[::-1])[::-1].copy()
    arguments = *columns, *table, order, v, reaches, peaks, upper, sizes, costs

    def between(begin: int, end: int, *limits: float) -> Found:
        """Return the pairs at positions [begin, end).

        ``limits`` are the other six numbers, from ``enough`` to ``shift``.
        """
        # The kernel writes positions and scores of the pairs that it finds.
        first, second = np.empty((2, size + FOUND_AT_A_TIME), dtype=np.int32)
        found_scores = np.empty(first.size)
        following, n_pairs, products = _native.pair_search(
            *arguments, begin, end, *limits, first, second, found_scores
        )
        pairs = order[first[:n_pairs]], order[second[:n_pairs]]
        return following, *pairs, found_scores[:n_pairs].copy(), products

    return between
