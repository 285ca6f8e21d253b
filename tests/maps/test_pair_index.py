"""The numbering of pairs: both ways, exact, for the largest designs too."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn.core import LIMITS
from atomlearn.maps.pairs.index import PairIndex

MAX_INPUTS = LIMITS.most_columns


def listed(d: int, squares: bool) -> list[tuple[int, int]]:
    pairs = [(i, j) for i in range(d) for j in range(i, d) if squares or j > i]
    return [(i, -1) for i in range(d)] + pairs


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 20])
def test_all_columns_of_small_maps(d: int, squares: bool) -> None:
    index, expected = PairIndex(d, squares), listed(d, squares)
    assert index.n_columns == len(expected)
    everything = np.arange(len(expected))
    i, j = index.pairs(everything)
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected
    np.testing.assert_array_equal(index.columns(i, j), everything)


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("d", [1000, 99_991, 10**7, 4_590_000, MAX_INPUTS - 1, MAX_INPUTS])
def test_round_trips_of_large_maps(d: int, squares: bool) -> None:
    """Both ends of the rows of the triangle are where rounding would show; Python's integers."""
    index = PairIndex(d, squares)
    shift = 0 if squares else 1
    rng = np.random.default_rng(d)
    rows = {0, 1, 2, d // 2, d - 3, d - 2, d - 1 - shift, *rng.integers(0, d - 1, 300).tolist()}
    pairs = [
        (i, j)
        for i in rows
        for j in {i + shift, i + shift + 1, (i + shift + d - 1) // 2, d - 2, d - 1}
        if i + shift <= j < d
    ]
    # Exact: the pairs of all rows before i, then those of row i before j.
    columns = [d + sum_of_rows(i, d - shift) + j - i - shift for i, j in pairs]
    i, j = np.array(pairs, dtype=np.int64).T
    np.testing.assert_array_equal(index.columns(i, j), np.array(columns, dtype=np.int64))
    back = index.pairs(np.array(columns, dtype=np.int64))
    np.testing.assert_array_equal(back[0], i)
    np.testing.assert_array_equal(back[1], j)
    last = index.n_columns - 1
    assert last == d + (d - shift) * (d - shift + 1) // 2 - 1
    assert [int(part[0]) for part in index.pairs(np.array([last]))] == [d - 1 - shift, d - 1]


def sum_of_rows(i: int, first: int) -> int:
    """first + (first - 1) + ... (i terms)"""
    return i * first - i * (i - 1) // 2


def test_too_many_inputs() -> None:
    with pytest.raises(ValueError, match="at most"):
        PairIndex(MAX_INPUTS + 1, True)


def test_columns_are_checked() -> None:
    index = PairIndex(3, True)
    with pytest.raises(IndexError, match="between 0 and 8"):
        index.checked([9])
    with pytest.raises(TypeError, match="whole numbers"):
        index.checked([1.5])
    assert index.checked([]).dtype == np.int64
