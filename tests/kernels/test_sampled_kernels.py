"""Products of factors at stored positions against dense twins: index types, empty rows, threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from atomlearn import _kernels as kernels
from tests.oracles import kernels as reference


def positions(rng, p, q, count, index):
    """Stored positions of a p x q matrix with empty rows and repeats."""
    rows = np.sort(rng.integers(0, p, count))
    pointer = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=p))])
    return rng.integers(0, q, count).astype(index), pointer.astype(index)


@given(
    p=st.integers(1, 30),
    q=st.integers(1, 30),
    width=st.integers(0, 20),
    count=st.integers(0, 200),
    index=st.sampled_from([np.int32, np.int64]),
    seed=st.integers(0, 99),
)
def test_products_equal_their_twins(p, q, width, count, index, seed):
    rng = np.random.default_rng(seed)
    at, starts = positions(rng, p, q, count, index)
    left, right = rng.normal(size=(p, width)), rng.normal(size=(q, width))
    sampled = kernels.sampled_products(at, starts, left, right)
    expected = reference.sampled_products(at, starts, left, right)
    np.testing.assert_allclose(sampled, expected, atol=1e-12)
    data = rng.normal(size=count)
    product = kernels.matrix_product_csr(data, at, starts, right)
    expected = reference.matrix_product_csr(data, at, starts, right)
    np.testing.assert_allclose(product, expected, atol=1e-12)
    assert product.shape == (p, width)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_large_products_do_not_depend_on_threads(order, index):
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    p, q, width = 3000, 500, 9
    at, starts = positions(rng, p, q, 400_000, index)
    left = np.asarray(rng.normal(size=(p, width)), order=order)
    right = np.asarray(rng.normal(size=(q, width)), order=order)
    data = rng.normal(size=at.size)
    found = []
    for threads in (1, 3):
        with threadpool_limits(threads):
            sampled = kernels.sampled_products(at, starts, left, right)
            found.append((sampled, kernels.matrix_product_csr(data, at, starts, right)))
    for first, second in zip(*found, strict=True):
        np.testing.assert_array_equal(first, second)
    rows = np.repeat(np.arange(p), np.diff(starts))
    np.testing.assert_allclose(found[0][0], (left[rows] * right[at]).sum(axis=1), atol=1e-11)
    X = sparse.csr_array((data, at, starts), shape=(p, q))
    np.testing.assert_allclose(found[0][1], X @ right, atol=1e-10)


def test_refusals_name_the_remedy():
    at, starts = np.array([0, 1]), np.array([0, 1, 2])
    two = np.ones((2, 3))
    for left, right in ((np.ones((3, 3)), two), (two, np.ones((2, 4)))):
        with pytest.raises(ValueError, match="left must have shape"):
            kernels.sampled_products(at, starts, left, right)
    with pytest.raises(ValueError, match="one type"):
        kernels.sampled_products(at.astype(np.int32), starts, two, two)
    with pytest.raises(ValueError, match="data must have 2 entries"):
        kernels.matrix_product_csr(np.ones(3), at, starts, two)


@given(
    p=st.integers(1, 20),
    q=st.integers(1, 20),
    width=st.integers(0, 19),
    count=st.integers(0, 200),
    index=st.sampled_from([np.int32, np.int64]),
    ordered=st.booleans(),
    seed=st.integers(0, 99),
)
def test_ridge_steps_equal_their_twin(p, q, width, count, index, ordered, seed):
    rng = np.random.default_rng(seed)
    at, starts = positions(rng, p, q, count, index)
    slope, curvature = rng.normal(size=count), rng.uniform(0.0, 2.0, count)
    factor, current = rng.normal(size=(q, width)), rng.normal(size=(p, width))
    order = None if ordered else rng.permutation(count).astype(index)
    given_ = current.copy()
    found = kernels.factor_ridge(at, starts, slope, curvature, factor, current, 0.3, order)
    expected = reference.factor_ridge(at, starts, slope, curvature, factor, current, 0.3, order)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(current, given_)


def test_ridge_steps_do_not_depend_on_threads_and_leave_what_is_not_finite():
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    p, q, width = 2000, 300, 11
    at, starts = positions(rng, p, q, 200_000, np.int32)
    slope, curvature = rng.normal(size=at.size), rng.uniform(0.0, 2.0, at.size)
    curvature[starts[7]] = np.nan
    factor, current = rng.normal(size=(q, width)), rng.normal(size=(p, width))
    found = []
    for threads in (1, 3):
        with threadpool_limits(threads):
            found.append(kernels.factor_ridge(at, starts, slope, curvature, factor, current, 1.0))
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[0][7], current[7])
    assert np.isfinite(found[0]).all()


def test_ridge_steps_refuse_other_shapes():
    at, starts = np.zeros(2, dtype=np.int32), np.array([0, 2], dtype=np.int32)
    good = [at, starts, np.ones(2), np.ones(2), np.ones((1, 3)), np.ones((1, 3)), 1.0]
    for place, wrong, message in (
        (2, np.ones(3), "slope"),
        (3, np.ones(1), "curvature"),
        (5, np.ones((2, 3)), "shape"),
        (5, np.ones((1, 2)), "shape"),
    ):
        given_ = [*good[:place], wrong, *good[place + 1 :]]
        with pytest.raises(ValueError, match=message):
            kernels.factor_ridge(*given_)
    with pytest.raises(ValueError, match="order"):
        kernels.factor_ridge(*good, order=np.zeros(3, dtype=np.int32))
