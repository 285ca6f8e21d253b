"""Sparse kernels against dense twins: precisions, index types, broken arrays."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from atomlearn import _kernels as kernels
from tests.oracles import kernels as reference
from tests.oracles.covering import in_turn

DTYPES = [np.float32, np.float64]
INDICES = [np.int32, np.int64]


def random_csr(rng, n, p, density, dtype, index):
    """CSR with empty rows, a full row, and skewed columns."""
    mask = rng.random((n, p)) < density * 3 * rng.random(p) ** 2
    mask[rng.random(n) < 0.2] = False
    if n:
        mask[rng.integers(n)] = True
    X = sparse.csr_array(np.where(mask, rng.standard_normal((n, p)), 0.0).astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def arrays(X):
    return X.data, X.indices, X.indptr


@pytest.mark.parametrize(
    ("shape", "dtype", "index"), in_turn([(1, 1), (5, 3), (60, 900), (2000, 300)], DTYPES, INDICES)
)
def test_products_equal_their_twins(shape, index, dtype):
    rng = np.random.default_rng(0)
    n, p = shape
    csr = random_csr(rng, n, p, 0.15, dtype, index)
    csc = sparse.csc_array(csr)
    csc.indices, csc.indptr = csc.indices.astype(index), csc.indptr.astype(index)
    v, w, c = rng.standard_normal(n), rng.standard_normal(p), rng.random(n)
    v[rng.random(n) < 0.3] = 0.0
    w[rng.random(p) < 0.3] = 0.0
    for name, X, arguments in [
        ("sparse_sums", csr, (v, p)),
        ("sparse_dots", csc, (v,)),
        ("sparse_dots", csr, (w,)),
        ("sparse_sums", csc, (w, n)),
        ("sparse_sums", csr, (c, p, True)),
        ("sparse_dots", csc, (c, True)),
    ]:
        result = getattr(kernels, name)(*arrays(X), *arguments)
        expected = getattr(reference, name)(*arrays(X), *arguments)
        assert result.dtype == np.float64
        np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("n_columns", [40, 300_000])
def test_csr_scores_choose_well_and_right(n_columns):
    """Few columns (a buffer a thread), and many (one thread)."""
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(1)
    n, each = 20_000, 12
    indices = rng.integers(0, n_columns, (n, each))
    data = rng.standard_normal(n * each)
    indptr = np.arange(0, n * each + 1, each)
    v = rng.standard_normal(n)
    expected = np.bincount(indices.ravel(), data * np.repeat(v, each), minlength=n_columns)
    for limit in (1, 3):
        with threadpool_limits(limits=limit, user_api="openmp"):
            result = kernels.sparse_sums(data, indices.ravel(), indptr, v, n_columns)
        np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-11)


def test_csc_scores_with_many_threads():
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(2)
    X = sparse.csc_array(random_csr(rng, 3000, 700, 0.1, np.float64, np.int32))
    v, w = rng.standard_normal(3000), rng.standard_normal(700)
    with threadpool_limits(limits=4, user_api="openmp"):
        np.testing.assert_allclose(kernels.sparse_dots(*arrays(X), v), X.T @ v, atol=1e-11)
        np.testing.assert_allclose(kernels.sparse_sums(*arrays(X), w, 3000), X @ w, atol=1e-11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize(("sort", "limit"), [(True, 1), (False, 3)])
def test_weighted_squares(dtype, index, sort, limit):
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(4)
    for n, p, density in ((0, 4, 0.5), (30, 0, 0.5), (40, 1, 0.5), (3000, 60, 0.5)):
        X = random_csr(rng, n, p, density, dtype, index)
        parts = list(arrays(X))
        if not sort:  # turn every row around
            for start, end in itertools.pairwise(X.indptr):
                parts[0][start:end] = parts[0][start:end][::-1].copy()
                parts[1][start:end] = parts[1][start:end][::-1].copy()
        weights = rng.standard_normal(n) * (rng.random(n) < 0.7)
        with threadpool_limits(limits=limit, user_api="openmp"):
            result = kernels.weighted_squares_csr(*parts, weights, p)
        expected = reference.weighted_squares_csr(*parts, weights, p)
        assert result.dtype == np.float64
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(result, result.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", INDICES)
def test_pair_sums(dtype, index):
    rng = np.random.default_rng(5)
    for n, density in ((1, 0.5), (40, 0.0), (40, 0.4), (3000, 0.05)):
        X = sparse.random_array((n, 30), density=density, rng=rng, format="csc", dtype=dtype)
        # Columns of very different lengths are searched, others merged.
        full = sparse.csc_array(rng.standard_normal((n, 2)).astype(dtype))
        X = sparse.csc_array(sparse.hstack([X, full], format="csc"))
        X.sort_indices()
        parts = X.data, X.indices.astype(index), X.indptr.astype(index)
        first, second = rng.integers(0, 32, (2, 300))
        v = rng.standard_normal(n)
        sums = kernels.pair_sums_csc(*parts, first, second, v)
        expected = reference.pair_sums_csc(*parts, first, second, v)
        np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(sums, kernels.pair_sums_csc(*parts, second, first, v))
    with pytest.raises(ValueError, match="positions"):
        kernels.pair_sums_csc(*parts, first + 31, second, v)


@given(
    n=st.integers(0, 30),
    p=st.integers(0, 30),
    density=st.floats(0, 1),
    dtype=st.sampled_from(DTYPES),
    index=st.sampled_from(INDICES),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_small_shape(n, p, density, dtype, index, seed):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(
        np.where(rng.random((n, p)) < density, rng.standard_normal((n, p)), 0).astype(dtype)
    )
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    wide = X.toarray().astype(np.float64)
    v, w = rng.standard_normal(n), rng.standard_normal(p)
    np.testing.assert_allclose(kernels.sparse_sums(*arrays(X), v, p), wide.T @ v, atol=1e-12)
    np.testing.assert_allclose(kernels.sparse_dots(*arrays(X), w), wide @ w, atol=1e-12)


def test_duplicate_and_unsorted_entries_add_up():
    data = np.array([1.0, 2.0, 4.0, 8.0])
    indices = np.array([2, 0, 2, 2], dtype=np.int32)
    indptr = np.array([0, 3, 4], dtype=np.int32)
    np.testing.assert_array_equal(
        kernels.sparse_sums(data, indices, indptr, np.array([1.0, 10.0]), 3), [2, 0, 85]
    )
    np.testing.assert_array_equal(
        kernels.sparse_dots(data, indices, indptr, np.array([1.0, 0.0, 3.0])), [17, 24]
    )


FAULTS = {
    "good": (lambda i, p: None, None),
    "first": (lambda i, p: p.__setitem__(0, 1), r"start with 0 \(1 at position 0\)"),
    "decreasing": (lambda i, p: p.__setitem__(100, p[99] - 1), "decreases .* position 100"),
    "negative pointer": (lambda i, p: p.__setitem__(5, -4), r"decreases \(-4 at position 5\)"),
    "last": (lambda i, p: p.__setitem__(-1, p[-1] + 3), "120000 entries are stored"),
    "negative index": (lambda i, p: i.__setitem__(70_001, -1), r"\(-1 at position 70001\)"),
    "too large": (lambda i, p: i.__setitem__(99_999, 500), r"\(500 at position 99999\)"),
    "least and greatest": (
        lambda i, p: i.__setitem__([3, 5], [2**31 - 1, -(2**31)]),
        r"\(2147483647 at position 3\)",
    ),
}


@pytest.mark.parametrize("index", INDICES)
def test_the_first_fault_is_named(index):
    rng = np.random.default_rng(3)
    for damage, said in FAULTS.values():
        indices = rng.integers(0, 500, 120_000).astype(index)
        pointers = np.sort(rng.integers(0, 120_000, 299))
        indptr = np.concatenate([[0], pointers, [120_000]]).astype(index)
        damage(indices, indptr)
        fault = kernels.sparse_fault(indices, indptr, 500)
        assert fault is None if said is None else re.search(said, fault)
    none = np.zeros(0, dtype=index)
    assert kernels.sparse_fault(none, np.zeros(1, dtype=index), 0) is None
    assert kernels.sparse_fault(none, np.zeros(4, dtype=index), 7) is None


def test_what_does_not_fit_is_refused():
    data, ones = np.ones(3), np.ones(1)
    indices, indptr = np.array([0, 1, 2], dtype=np.int32), np.array([0, 3], dtype=np.int32)
    for fault, said, *arguments in [
        (ValueError, "one type", data, indices, indptr.astype(np.int64), ones),
        (TypeError, "int32 or int64", data, indices.astype(np.uint8), indptr, ones),
        (TypeError, "float32 or float64", data.astype(int), indices, indptr, ones),
        (ValueError, "one size", data, indices[:2], indptr, ones),
        (ValueError, "more entries", data[:2], indices[:2], indptr, ones),
        (ValueError, "number a vector", data, indices, indptr, np.ones(2)),
    ]:
        with pytest.raises(fault, match=said):
            kernels.sparse_sums(*arguments, 3)
