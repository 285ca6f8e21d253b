"""Histograms of coded columns and thermometer scores against their twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from atomlearn import _kernels as kernels
from tests.oracles import kernels as reference


def coded(rng, n_rows, levels, index_type=None):
    """Random coded columns with these numbers of levels; compressed where a type is given."""
    starts = np.concatenate([[0], np.cumsum(levels)]).astype(np.int64)
    codes, rows, indptr = [], [], [0]
    for count in levels:
        chosen = np.arange(n_rows)
        if index_type is not None:
            chosen = rng.permutation(n_rows)[: rng.integers(0, n_rows + 1)]
        rows.append(chosen)
        codes.append(rng.integers(0, count, chosen.size))
        indptr.append(indptr[-1] + chosen.size)
    bytes_ = np.concatenate(codes).astype(np.uint8)
    if index_type is None:
        return kernels.CodedColumns(bytes_, None, None, n_rows, starts)
    indices = np.concatenate(rows).astype(index_type)
    return kernels.CodedColumns(bytes_, indices, np.array(indptr, index_type), n_rows, starts)


@given(
    st.integers(0, 2**31),
    st.integers(1, 40),
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.sampled_from([None, np.int32, np.int64]),
)
def test_sums_equal_those_written_out(seed, n_rows, levels, index_type):
    rng = np.random.default_rng(seed)
    x = coded(rng, n_rows, levels, index_type)
    v = rng.standard_normal(n_rows)
    values = np.concatenate([np.sort(rng.standard_normal(count)) for count in levels])
    zero = np.array([rng.integers(0, count) for count in levels])
    sums = kernels.code_histograms(x, v)
    assert_allclose(sums, reference.code_histograms(x, v), atol=1e-12)
    scores = kernels.thermometer_scores(x, values, zero, v)
    assert_allclose(scores, reference.thermometer_scores(x, values, zero, v), atol=1e-12)


@pytest.mark.parametrize("index_type", [None, np.int32, np.int64])
@pytest.mark.parametrize("count", [1, 8, 11])
def test_many_vectors_are_each_of_them(index_type, count):
    rng = np.random.default_rng(count)
    levels, n_rows = [3, 1, 200, 16, 7], 500
    x = coded(rng, n_rows, levels, index_type)
    values = np.concatenate([np.sort(rng.standard_normal(size)) for size in levels])
    zero = np.array([rng.integers(0, size) for size in levels])
    V = rng.standard_normal((n_rows, count))
    codes = np.asfortranarray(rng.integers(0, 9, (n_rows, 4)).astype(np.uint8))
    first, second = np.array([0, 3, 2]), np.array([1, 0, 2])
    for sums in (
        lambda v: kernels.code_histograms(x, v),
        lambda v: kernels.thermometer_scores(x, values, zero, v),
        lambda v: kernels.pair_histograms(codes, 9, first, second, v),
    ):
        together = sums(V)
        assert together.shape[-1] == count
        for k in range(count):
            assert_allclose(together[..., k], sums(V[:, k].copy()), atol=1e-11)


@pytest.mark.parametrize("index_type", [None, np.int32])
def test_many_entries_of_many_levels(index_type):
    rng = np.random.default_rng(0)
    x = coded(rng, 100_000, [256, 1, 2, 100] * 8, index_type)
    v = rng.standard_normal(100_000)
    expected = reference.code_histograms(x, v)
    assert_allclose(kernels.code_histograms(x, v), expected, atol=1e-9)


@pytest.mark.parametrize("n_rows", [0, 1, 7, 4000])
def test_pair_histograms_equal_their_twin(n_rows):
    rng = np.random.default_rng(n_rows)
    codes = np.asfortranarray(rng.integers(0, 16, (n_rows, 9)).astype(np.uint8))
    codes[: n_rows // 2, 3] = 5  # many equal ones after each other
    first, second = np.triu_indices(9)
    weights = rng.standard_normal(n_rows)
    found = kernels.pair_histograms(codes, 16, first, second, weights)
    expected = reference.pair_histograms(codes, 16, first, second, weights)
    assert_allclose(found, expected, atol=1e-11)


def test_what_does_not_fit_is_refused():
    x = coded(np.random.default_rng(2), 5, [3, 4])
    with pytest.raises(ValueError, match="for each row"):
        kernels.code_histograms(x, np.ones(4))
    with pytest.raises(ValueError, match="one code of each column"):
        kernels.thermometer_scores(x, np.arange(7.0), np.array([3]), np.ones(5))
    table, at = np.zeros((5, 2), dtype=np.uint8, order="F"), np.array([0])
    with pytest.raises(ValueError, match="between 1 and 16"):
        kernels.pair_histograms(table, 17, at, at, np.ones(5))
    with pytest.raises(ValueError, match="positions"):
        kernels.pair_histograms(table, 4, at, at + 2, np.ones(5))
    with pytest.raises(ValueError, match="pair up"):
        kernels.pair_histograms(table, 4, np.array([0, 1]), at, np.ones(5))
    with pytest.raises(TypeError, match="Fortran order"):
        kernels.pair_histograms(np.zeros((5, 2), dtype=np.uint8), 4, at, at, np.ones(5))
