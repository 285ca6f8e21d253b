"""Columns as files hold them, against NumPy: every length of the last word, every code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import _kernels
from atomlearn.testing.cases import each
from tests.oracles import kernels as reference


@given(n=st.integers(1, 140), p=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_genotypes_match_the_naive_twin(n: int, p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Random bits beyond the last sample, too: they must not matter.
    data = rng.integers(0, 256, size=p * ((n + 3) // 4), dtype=np.uint8)
    means, v, w = rng.random(p), rng.standard_normal(n), rng.standard_normal(p)
    for squared in (False, True):
        z = _kernels.scores_genotypes(data, n, means, _kernels.padded(v), squared)
        expected = reference.scores_genotypes(data, n, means, v, squared)
        assert_allclose(z, expected, rtol=0, atol=1e-14 * 4 * np.abs(v).sum())
    out = _kernels.padded(v)
    _kernels.add_genotypes(data, n, means, w, out)
    expected = v.copy()
    reference.add_genotypes(data, n, means, w, expected)
    assert_allclose(out[:n], expected, rtol=0, atol=1e-14 * 2 * (np.abs(w).sum() + 9))
    counted = _kernels.count_genotypes(data, n, p)
    assert_array_equal(counted, reference.count_genotypes(data, n, p))
    for dtype in (np.float32, np.float64):
        gathered = _kernels.gather_genotypes(data, n, means, dtype)
        assert gathered.dtype == dtype
        assert_array_equal(gathered, reference.gather_genotypes(data, n, means, dtype))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("n", "p", "m"), [(1, 2, 1), (33, 3, 5), (515, 7, 300), (16500, 4, 3)])
def test_counted_products_of_genotypes_are_exact(n: int, p: int, m: int, missing: bool) -> None:
    rng = np.random.default_rng(n)
    sizes = p * ((n + 3) // 4), m * ((n + 3) // 4)
    data, others = (rng.integers(0, 256, size=size, dtype=np.uint8) for size in sizes)
    if not missing:  # 01 becomes 11
        data, others = data | (data & 0x55) << 1, others | (others & 0x55) << 1
    v = np.where(rng.random(n) < 0.3, 0.0, rng.standard_normal(n))
    given = data, 2.0 * rng.random(p), others, 2.0 * rng.random(m), v
    found, expected = _kernels.multiply_genotypes(*given), reference.multiply_genotypes(*given)
    assert_allclose(found, expected, rtol=0, atol=1e-14 * n * missing)


@pytest.mark.parametrize("kind", _kernels.STORED_TYPES)
@each("n", [1, 7, 8, 9, 16, 100, 1037])
def test_stored_types_match_float64(kind: np.dtype, n: int) -> None:
    rng = np.random.default_rng(n)
    X = np.asfortranarray(np.clip(30 * rng.standard_normal((n, 11)), -128, 127)).astype(kind)
    v, w, wide = rng.standard_normal(n), rng.standard_normal(11), X.astype(np.float64)
    assert_allclose(_kernels.scores_dense(X, v), wide.T @ v, rtol=1e-11, atol=1e-9)
    assert_allclose(_kernels.predict_dense(X, w), wide @ w, rtol=1e-11, atol=1e-9)
    squares = (wide**2).T @ np.abs(v)
    assert_allclose(_kernels.scores_dense(X, np.abs(v), squared=True), squares, rtol=1e-12)


def test_every_half_precision_number_is_widened_exactly() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    by_row = np.asfortranarray(halves[None, :])
    assert_array_equal(_kernels.scores_dense(by_row, np.ones(1)), halves.astype(np.float64))
    column = np.asfortranarray(halves[:, None])
    for one in (5, 2**14, halves.size - 1):
        v = np.zeros(halves.size)
        v[one] = 1.0
        assert _kernels.scores_dense(column, v)[0] == float(halves[one])


def test_bytes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="take 6 bytes"):
        _kernels.scores_genotypes(
            np.zeros(5, dtype=np.uint8), 9, np.zeros(2), _kernels.padded(np.zeros(9))
        )
    with pytest.raises(ValueError, match="v must have"):
        _kernels.scores_genotypes(np.zeros(6, dtype=np.uint8), 9, np.zeros(2), np.zeros(9))


@pytest.mark.parametrize("n", [4095, 4096, 4099])
def test_long_columns_of_genotypes_are_unpacked_by_bytes(n: int) -> None:
    rng = np.random.default_rng(n)
    data, means = rng.integers(0, 256, 3 * ((n + 3) // 4)).astype(np.uint8), rng.random(3)
    for dtype in (np.float32, np.float64):
        gathered = _kernels.gather_genotypes(data, n, means, dtype)
        assert_array_equal(gathered, reference.gather_genotypes(data, n, means, dtype))


@given(
    n=st.integers(1, 300),
    p=st.integers(1, 70),
    m=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_large_products_of_genotypes_are_found_and_exact(n: int, p: int, m: int, seed: int) -> None:
    """Vectors of very different sizes, none and all of whose products are large."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, size=p * ((n + 3) // 4), dtype=np.uint8)
    counts, means = _kernels.count_genotypes(data, n, p), rng.random(p)
    X = reference.gather_genotypes(data, n, means, np.float64)
    V = rng.standard_normal((n, m)) * np.exp(9 * rng.standard_normal(m))
    V[:, rng.random(m) < 0.2] = 0.0
    centers, factors = rng.random(p), np.where(rng.random(p) < 0.1, 0.0, rng.random(p))
    Z = (X.T @ V - np.outer(centers, V.sum(axis=0))) * factors[:, None]
    bounds = rng.choice([0.3, 0.7, 0.99, 2.0]) * np.abs(Z).max(axis=0) + np.finfo(float).tiny
    search = _kernels.genotype_search(V, bounds)
    columns, values = search(data, means, counts[:, 0], centers, factors)
    error = 1e-13 * (np.abs(X).T + centers[:, None] + 1.0) @ np.abs(V) + 1e-300
    assert_allclose(values, Z[columns], rtol=0, atol=float(error.max()))
    assert (np.abs(values - Z[columns]) <= error[columns]).all()
    surely = (np.abs(Z) >= bounds + error).any(axis=1)
    never = (np.abs(Z) < bounds - error).all(axis=1)
    assert set(np.flatnonzero(surely)) <= set(columns)
    assert not set(np.flatnonzero(never)) & set(columns)


@pytest.mark.parametrize("digit", [-128, -127, 127])
def test_sums_of_bytes_do_not_overflow(digit: int) -> None:
    """Two copies everywhere and the largest digits: sums of 16 bits hold those of 64 quads."""
    n, step = 2000, 1.0 / (127 * 256)  # the largest entry of a vector is 127 * 256 steps
    V = np.full((n, 1), digit * step)
    V[0] = 1.0
    z = 2.0 * V.sum()
    data, one = np.zeros(n // 4, dtype=np.uint8), np.ones(1)
    for share, times in ((0.999, 1), (1.001, 0)):
        search = _kernels.genotype_search(V, np.array([share * abs(z)]))
        columns, _ = search(data, one, np.array([2 * n]), 0.0 * one, one)
        assert columns.size == times


def test_a_vector_that_is_not_finite_shows_among_large_products() -> None:
    data, means = np.full(6, 0b11111010, dtype=np.uint8), np.ones(2)
    V, ones = np.ones((9, 2)), np.ones(2)
    for bad in (np.nan, np.inf):
        V[4, 1] = bad
        search = _kernels.genotype_search(V, np.full(2, 1e6))
        _, values = search(data, means, np.full(2, 6), 0.0 * ones, ones)
        assert not np.isfinite(values).all()
