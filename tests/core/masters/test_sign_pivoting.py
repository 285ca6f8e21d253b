"""Block pivoting on signs against the active-set QP, which descends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atomlearn._kernels import ActiveFactor, active_set_qp, pivot_path
from atomlearn.core.masters.sign_pivoting import l1_quadratic
from atomlearn.testing.cases import each

ONE = np.ones(1)


@each("seed", range(15))
def test_paths_of_levels_are_those_of_the_active_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 60)), int(rng.integers(1, 80))
    A = rng.standard_normal((n, m))
    if seed % 3 == 0:  # copies of columns
        A[:, m // 2 :] = A[:, : m - m // 2]
    y = A[:, :5].sum(axis=1) + rng.standard_normal(n)
    H, c, ridge = A.T @ A, A.T @ y, 0.5 * (seed % 2)
    factor, w = ActiveFactor(), np.zeros(m)
    for level in np.geomspace(1, 0.01, 15) * np.abs(c).max():
        price = level * (rng.uniform(0.5, 2, m) if seed % 5 == 0 else np.ones(m))

        def value(x: Any, price: Any = price) -> float:
            return float(0.5 * x @ H @ x + 0.5 * ridge * x @ x - c @ x + price @ np.abs(x))

        slope = H @ w + ridge * w - c
        [w] = l1_quadratic(H, slope, price, w, ONE, ridge=ridge, factor=factor, most=n - 1)
        slow, _ = active_set_qp(
            H, -c, np.zeros(m), price=price, level=1.0, signed=True, ridge=ridge, from_gradient=True
        )
        assert value(w) <= value(slow) + 1e-9 * abs(value(slow))


def test_the_factor_follows_any_sequence_of_supports() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 60))
    H, factor, w = A.T @ A, ActiveFactor(), np.zeros(60)
    for _ in range(60):
        c, price = A.T @ rng.standard_normal(80), rng.uniform(1, 10, 60)
        [w] = l1_quadratic(H, H @ w + 0.1 * w - c, price, w, ONE, ridge=0.1, factor=factor)
        used = factor.active
        assert set(used) == set(np.flatnonzero(w))
        right = c[used] - price[used] * np.sign(w[used])
        exact = np.linalg.solve(H[np.ix_(used, used)] + 0.1 * np.eye(used.size), right)
        np.testing.assert_allclose(w[used], exact, rtol=1e-9)
        upper = np.triu(factor.factor[: used.size, : used.size])
        np.testing.assert_allclose(
            upper.T @ upper, H[np.ix_(used, used)] + 0.1 * np.eye(used.size), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_many_levels_in_one_call_are_those_of_calls_for_each(ridge: float) -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((40, 70))
    H, c, price = A.T @ A, A.T @ rng.standard_normal(40), rng.uniform(0.5, 2, 70)
    levels = np.geomspace(1, 1e-3, 80) * np.abs(c / price).max()
    rows = l1_quadratic(H, -c, price, np.zeros(70), levels, ridge=ridge, most=39)
    assert rows.shape == (80, 70)
    for level, w in zip(levels, rows, strict=True):
        g = c - H @ w - ridge * w
        used = w != 0
        np.testing.assert_allclose(g[used], level * price[used] * np.sign(w[used]), atol=1e-8)
        assert (np.abs(g) <= level * price + 1e-8).all()
    asked = iter([True, False])
    few = l1_quadratic(H, -c, price, np.zeros(70), levels, ridge=1.0, going=lambda: next(asked))
    assert few.shape == (32, 70)


@each("seed", range(10))
def test_columns_that_depend_on_others_are_left_out(seed: int) -> None:
    """Copies of columns, also in use at the start; more of them than a panel holds."""
    rng = np.random.default_rng(seed)
    A, own = rng.standard_normal((300, 200)), rng.uniform(0.5, 2, 200)
    order = rng.permutation(320)
    A, price = np.hstack([A, -A[:, :120]])[:, order], np.hstack([own, own[:120]])[order]
    c, H = A.T @ rng.standard_normal(300), A.T @ A
    w = rng.standard_normal(320) * (rng.random(320) < 0.5)
    level = 0.02 * np.abs(c / price).max() * ONE
    factor = ActiveFactor()
    [solved] = pivot_path(H, H @ w - c, price, w, level, state=factor)
    assert np.linalg.matrix_rank(H[np.ix_(factor.active, factor.active)]) == factor.count
    pull = np.abs(c - H @ solved)
    assert (pull <= level * price * (1 + 1e-9)).all()
    used = solved != 0
    np.testing.assert_allclose((c - H @ solved)[used], (level * price * np.sign(solved))[used])


def test_of_two_copies_one_has_all_the_weight() -> None:
    H, slope, price = np.ones((2, 2)), np.array([-3.0, -3.0]), np.array([1.0, 1.0])
    [w] = pivot_path(H, slope, price, np.ones(2), ONE)
    assert sorted(w) == pytest.approx([0.0, 4.0])
