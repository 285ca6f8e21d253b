"""Many vectors at once: the products, and what is found among them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from atomlearn import _kernels as kernels

SIZES = [(1, 1), (5, 3), (37, 130), (600, 61), (3000, 40)]


def vectors(n_rows: int, count: int) -> Any:
    return np.random.default_rng(count).standard_normal((n_rows, count))


def check(found: kernels.FoundColumns, exact: Any, bounds: Any) -> None:
    mask = (np.abs(exact) >= bounds[:, None]).any(axis=0)
    np.testing.assert_array_equal(found.columns, np.flatnonzero(mask))
    np.testing.assert_allclose(found.values, exact.T[mask], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_dense_products(size: tuple[int, int], dtype: Any, order: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal(size), dtype=dtype, order=order)
    rows = rng.integers(0, size[0], size[0] // 2 + 1)
    for count in (1, 7, 8, 16, 23, 40, 70):
        V = vectors(size[0], count)
        exact = (X.astype(np.float64).T @ V).T
        np.testing.assert_allclose(kernels.many_dense(X, V), exact, rtol=1e-11, atol=1e-11)
        bounds = 0.7 * np.abs(exact).max(axis=1) + 1e-12
        check(kernels.found_dense(X, V, bounds), exact, bounds)
        some = kernels.many_dense(X, V[: rows.size], rows)
        expected = (X[rows].astype(np.float64).T @ V[: rows.size]).T
        np.testing.assert_allclose(some, expected, rtol=1e-11, atol=1e-11)
    if order == "F":
        columns = np.arange(0, size[1], 2)
        np.testing.assert_array_equal(
            kernels.many_dense(X, V, columns=columns), kernels.many_dense(X, V)[:, columns]
        )


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.0, 0.03, 0.6])
def test_sparse_products(density: float, dtype: Any, index: Any) -> None:
    X = sparse.random(50, 333, density, random_state=0, dtype=dtype)
    by_columns, by_rows = X.tocsc(), X.tocsr()
    csc = by_columns.data, by_columns.indices.astype(index), by_columns.indptr.astype(index)
    csr = by_rows.data, by_rows.indices.astype(index), by_rows.indptr.astype(index)
    for count in (1, 8, 17, 33):
        V = vectors(50, count)
        exact = (X.toarray().astype(np.float64).T @ V).T
        bounds = 0.7 * np.abs(exact).max(axis=1) + 1e-12
        for many in (kernels.many_csc(*csc, V), kernels.many_csr(*csr, V, 333)):
            np.testing.assert_allclose(many, exact, rtol=1e-11, atol=1e-11)
        check(kernels.found_csc(*csc, V, bounds), exact, bounds)
        check(kernels.found_csr(*csr, V, bounds, 333), exact, bounds)
    columns = np.arange(1, 333, 3)
    np.testing.assert_array_equal(
        kernels.many_csc(*csc, V, columns=columns), kernels.many_csc(*csc, V)[:, columns]
    )


def test_threads_give_the_columns_in_order() -> None:
    X = np.asfortranarray(np.random.default_rng(1).standard_normal((300, 20_000)))
    V = vectors(300, 16)
    exact = (X.T @ V).T
    bounds = np.full(16, 30.0)
    for array in (X, np.ascontiguousarray(X)):
        check(kernels.found_dense(array, V, bounds), exact, bounds)


def test_numbers_that_are_none_are_found() -> None:
    X = np.zeros((4, 30), order="F")
    X[2, 11] = np.nan
    found = kernels.found_dense(X, np.ones((4, 2)), np.ones(2))
    assert found.columns.tolist() == [11]


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="V must have 3 rows, got 2"):
        kernels.many_dense(np.eye(3), np.ones((2, 4)))
    with pytest.raises(TypeError, match="V must be float64"):
        kernels.many_dense(np.eye(3), np.ones((3, 4), dtype=np.float32))
    with pytest.raises(ValueError, match="columns are contiguous"):
        kernels.many_dense(np.ones((3, 4)), np.ones((3, 1)), columns=[1])
