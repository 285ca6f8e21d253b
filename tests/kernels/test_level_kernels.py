"""Levels of columns and codes of their entries against their twins."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import _kernels as kernels
from tests.kernels.test_code_kernels import coded
from tests.oracles import kernels as reference


def columns_of(rng, n_rows, n_columns, index_type, dtype):
    """Entries with many that are equal, and zeros of both signs; some are not there."""
    values, rows, begin = [], [], [0]
    for _ in range(n_columns):
        chosen = np.arange(n_rows)
        if index_type is not None:
            chosen = rng.permutation(n_rows)[: rng.integers(0, n_rows + 1)]
        column = rng.standard_normal(chosen.size) + rng.integers(-3, 4)
        if rng.random() < 0.5:
            column = np.round(column * rng.integers(1, 5))
        values.append(column * rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.2, 0.7], size=chosen.size))
        rows.append(chosen)
        begin.append(begin[-1] + chosen.size)
    places = None if index_type is None else np.concatenate(rows).astype(index_type)
    return np.concatenate(values).astype(dtype), places, np.array(begin)


def levels_of(found):
    """Return the levels one after the other, and where each column begins."""
    levels, counts, _ = found
    kept = levels[np.arange(levels.shape[1]) < counts[:, None]]
    return kept, np.concatenate([[0], np.cumsum(counts)])


@given(
    st.integers(0, 2**31),
    st.integers(1, 50),
    st.integers(1, 12),
    st.sampled_from([None, np.int32, np.int64]),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
)
def test_levels_and_codes_equal_their_twins(seed, n_rows, n_bins, index_type, dtype, uniform):
    rng = np.random.default_rng(seed)
    values, rows, begin = columns_of(rng, n_rows, 5, index_type, dtype)
    # Multiples of a power of two: sums in any order are the same.
    weight = rng.integers(0, 4, n_rows) / 8.0
    weight[rng.integers(n_rows)] = 1.0
    given_ = values, rows, begin, weight, np.linspace(0.0, 1.0, n_bins), uniform
    found = kernels.find_levels(*given_)
    for levels, count, zero, (expected, origin) in zip(
        *found, reference.find_levels(*given_), strict=True
    ):
        assert_array_equal(levels[:count], expected)
        assert levels[zero] == origin
        assert not np.signbit(levels[:count][levels[:count] == 0]).any()
    codes = np.empty(values.size, dtype=np.uint8)
    kept, starts = levels_of(found)
    kernels.code_columns(values, begin, kept, starts, codes)
    for p, (expected, _) in enumerate(reference.find_levels(*given_)):
        part = slice(begin[p], begin[p + 1])
        apart = np.abs(np.subtract.outer(values[part].astype(np.float64), expected))
        chosen = np.take_along_axis(apart, codes[part, None].astype(np.int64), axis=1)
        # In the middle rounding decides.
        assert_allclose(chosen[:, 0], apart.min(axis=1), atol=1e-14)


def test_many_columns_are_each_of_them():
    """However many threads there are."""
    rng = np.random.default_rng(0)
    values, _, begin = columns_of(rng, 3000, 60, None, np.float64)
    weight, shares = rng.random(3000), np.linspace(0.0, 1.0, 255)
    whole = kernels.find_levels(values, None, begin, weight, shares, False)
    ends = np.array([0, 3000])
    for p in range(60):
        part = values[begin[p] : begin[p + 1]]
        levels, counts, zero = kernels.find_levels(part, None, ends, weight, shares, False)
        assert (counts[0], zero[0]) == (whole[1][p], whole[2][p])
        assert_array_equal(levels[0, : counts[0]], whole[0][p, : counts[0]])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_range_that_is_no_number_has_no_levels(wrong):
    values = np.array([0.0, 1.0, wrong, 2.0])
    ends = np.array([0, 2, 4])
    _, counts, _ = kernels.find_levels(
        values, None, ends, np.ones(2), np.array([0.0, 1.0]), uniform=False
    )
    assert counts.tolist() == [2, 0]


@given(st.integers(0, 2**31), st.sampled_from([None, np.int32, np.int64]))
def test_scores_of_tables_equal_those_written_out(seed, index_type):
    rng = np.random.default_rng(seed)
    levels, sizes = rng.integers(1, 9, 6), rng.integers(0, 5, 6)
    x = coded(rng, 40, levels, index_type)
    begins = np.concatenate([[0], np.cumsum(levels * sizes)])
    tables, V = rng.standard_normal(begins[-1]), rng.standard_normal((40, 11))
    for v in (V[:, 0].copy(), V):
        scores = kernels.table_scores(x, tables, begins, v)
        assert_allclose(scores, reference.table_scores(x, tables, begins, v), atol=1e-11)


@given(
    st.integers(0, 2**31),
    st.sampled_from([None, np.int32, np.int64]),
    st.integers(0, 4),
    st.sampled_from([2, 5, 12]),
)
def test_splines_equal_those_written_out(seed, index_type, degree, n_knots):
    """With few and many levels, rare ones, origins at either end, and one or many vectors."""
    rng = np.random.default_rng(seed)
    levels = np.append(rng.integers(1, 40, 6), 256)
    x = coded(rng, 60, levels, index_type)
    values = np.cumsum(rng.random(x.starts[-1]) + 0.05)
    zero = rng.integers(0, levels)
    weight, V = rng.random(60) ** 3, rng.standard_normal((60, 11))
    quantiles = np.linspace(0.0, 1.0, n_knots)[1:-1]
    numbers, starts = kernels.spline_knots(x, zero, quantiles, weight)
    expected = reference.spline_knots(x, zero, quantiles, weight)
    assert [numbers[a:b].tolist() for a, b in pairwise(starts)] == expected
    given_ = x, values, zero, (numbers, starts), degree
    for v in (V[:, 0].copy(), V):
        for power in (1, 2):
            scores = kernels.spline_scores(*given_, v, squared=power == 2)
            known = reference.spline_scores(x, values, zero, expected, degree, v, power)
            assert_allclose(scores, known, atol=1e-11)


def test_what_does_not_fit_is_refused():
    values, ends = np.arange(4.0), np.array([0, 2, 4])
    shares, weight, codes = np.array([0.0, 1.0]), np.ones(2), np.empty(4, dtype=np.uint8)
    with pytest.raises(ValueError, match="divide all values"):
        kernels.find_levels(values, None, np.array([0, 2]), weight, shares, False)
    with pytest.raises(ValueError, match="an entry in every row"):
        kernels.find_levels(values, None, np.array([0, 1, 4]), weight, shares, False)
    with pytest.raises(ValueError, match="1 to 256 levels"):
        kernels.code_columns(values, ends, np.arange(1.0), np.array([0, 0, 1]), codes)
    with pytest.raises(ValueError, match="out the entries"):
        kernels.code_columns(values, ends, np.arange(2.0), np.array([0, 1, 2]), codes[:3])
