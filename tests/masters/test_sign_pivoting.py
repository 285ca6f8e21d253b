"""Block pivoting on signs against the active-set QP, which descends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atomlearn._kernels import active_set_qp
from atomlearn.core.masters.sign_pivoting import SupportFactor, l1_quadratic


@pytest.mark.parametrize("seed", range(30))
def test_paths_of_levels_are_those_of_the_active_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 60)), int(rng.integers(1, 80))
    A = rng.standard_normal((n, m))
    if seed % 3 == 0:  # copies of columns
        A[:, m // 2 :] = A[:, : m - m // 2]
    y = A[:, :5].sum(axis=1) + rng.standard_normal(n)
    H, c, ridge = A.T @ A, A.T @ y, 0.5 * (seed % 2)
    factor, w = SupportFactor(), np.zeros(m)
    for level in np.geomspace(1, 0.01, 15) * np.abs(c).max():
        price = level * (rng.uniform(0.5, 2, m) if seed % 5 == 0 else np.ones(m))

        def value(x: Any, price: Any = price) -> float:
            return float(0.5 * x @ H @ x + 0.5 * ridge * x @ x - c @ x + price @ np.abs(x))

        slope = H @ w + ridge * w - c
        w, _ = l1_quadratic(H, slope, price, w, ridge=ridge, factor=factor, most=n - 1)
        slow, _ = active_set_qp(
            H, -c, np.zeros(m), price=price, level=1.0, signed=True, ridge=ridge, from_gradient=True
        )
        assert value(w) <= value(slow) + 1e-9 * abs(value(slow))


def test_the_factor_follows_any_sequence_of_supports() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 60))
    H, factor = A.T @ A, SupportFactor()
    support = np.arange(30)
    for _ in range(60):
        leaving = rng.choice(support, rng.integers(0, 4))
        joining = rng.choice(60, rng.integers(1, 5))
        support = rng.permutation(np.union1d(np.setdiff1d(support, leaving), joining))
        right = rng.standard_normal(support.size)
        exact = np.linalg.solve(H[np.ix_(support, support)] + 0.1 * np.eye(support.size), right)
        np.testing.assert_allclose(factor.solve(H, 0.1, support, right), exact, rtol=1e-9)


def test_columns_that_depend_on_each_other_are_told() -> None:
    H = np.ones((2, 2))
    with pytest.raises(np.linalg.LinAlgError, match="depend"):
        SupportFactor().solve(H, 0.0, np.arange(2), np.ones(2))
