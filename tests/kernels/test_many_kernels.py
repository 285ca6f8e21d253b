"""Many vectors at once: the products against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from atomlearn import _kernels as kernels
from tests.oracles.covering import in_turn

SIZES = [(1, 1), (37, 130), (600, 61), (3000, 40), (300, 20_000)]


def vectors(n_rows: int, count: int) -> Any:
    return np.random.default_rng(count).standard_normal((n_rows, count))


@pytest.mark.parametrize(
    ("size", "dtype", "order"), in_turn(SIZES, [np.float32, np.float64], ["C", "F"])
)
def test_dense_products(size: tuple[int, int], dtype: Any, order: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal(size), dtype=dtype, order=order)
    rows = rng.integers(0, size[0], size[0] // 2 + 1)
    for count in (1, 8, 23, 40):
        V = vectors(size[0], count)
        exact = (X.astype(np.float64).T @ V).T
        np.testing.assert_allclose(kernels.many_dense(X, V), exact, rtol=1e-11, atol=1e-11)
        some = kernels.many_dense(X, V[: rows.size], rows)
        expected = (X[rows].astype(np.float64).T @ V[: rows.size]).T
        np.testing.assert_allclose(some, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_products(dtype: Any, index: Any) -> None:
    for density in (0.0, 0.03, 0.6):
        X = sparse.random(50, 333, density, random_state=0, dtype=dtype, format="csc")
        csc = X.data, X.indices.astype(index), X.indptr.astype(index)
        for count in (1, 17, 33):
            V = vectors(50, count)
            many = kernels.many_csc(*csc, V)
            exact = (X.toarray().astype(np.float64).T @ V).T
            np.testing.assert_allclose(many, exact, rtol=1e-11, atol=1e-11)
