"""The pairwise elastic net and the trace lasso, against CVXPY."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.norms import L1, L2
from atomlearn.testing.cases import each
from experiments.rivals import PairwiseElasticNet, TraceLasso
from tests.oracles.sums import solve_sum


def data(seed: int, n: int = 20, p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 1.5 * rng.standard_normal((n, 1))
    X /= np.linalg.norm(X, axis=0)
    return X, X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(n)


@each("seed", [0, 4, 7])
def test_pairwise_elastic_net(seed: int) -> None:
    X, y = data(seed)
    # One similarity for all pairs; two groups of alike columns are not convex already.
    R = np.full((6, 6), 0.1 + 0.1 * seed)
    np.fill_diagonal(R, 1.0)
    norm = PairwiseElasticNet(R)
    root = np.linalg.cholesky(np.eye(6) + 1.0 - R).T
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(6)
    m = cp.Variable(6, nonneg=True)
    best = cp.Problem(cp.Maximize(np.abs(z) @ m), [cp.norm(root @ m) <= 1])
    assert_allclose(norm.polar(z), best.solve(solver="CLARABEL"), rtol=1e-5)
    atom = norm.best_atom(z)
    assert_allclose(atom.values @ z[atom.columns], norm.polar(z), rtol=1e-9)
    whole = np.zeros(6)
    whole[atom.columns] = atom.values
    assert_allclose(norm.value(whole), 1.0, rtol=1e-9)
    fit = solve_sum(X, y, norm=norm, form="squared", level=0.2, tol=1e-7)
    w, a = cp.Variable(6), cp.Variable(6, nonneg=True)
    model = 0.5 * cp.sum_squares(X @ w - y) + 0.1 * cp.sum_squares(root @ a)
    optimum = cp.Problem(cp.Minimize(model), [a >= w, a >= -w]).solve(solver="CLARABEL")
    assert fit.converged
    assert_allclose(fit.objective, optimum, rtol=1e-5)


def test_pairwise_ends_are_l1_and_l2() -> None:
    w = np.random.default_rng(0).standard_normal(5)
    assert_allclose(PairwiseElasticNet(np.eye(5)).value(w), L1().value(w))
    assert_allclose(PairwiseElasticNet(np.ones((5, 5))).value(w), L2().value(w))
    assert_allclose(PairwiseElasticNet(np.eye(5)).polar(w), L1().polar(w))
    assert_allclose(PairwiseElasticNet(np.ones((5, 5))).polar(w), L2().polar(w))
    with pytest.raises(ValueError, match="similarity"):
        PairwiseElasticNet(2 * np.eye(5)).on(5)
    with pytest.raises(ValueError, match="shape"):
        PairwiseElasticNet(np.eye(4)).on(5)
    with pytest.raises(ValueError, match="not convex"):
        PairwiseElasticNet(np.kron(np.eye(2), np.ones((2, 2)))).on(4)


@each("seed", range(2))
def test_trace_lasso(seed: int) -> None:
    X, y = data(seed)
    norm = TraceLasso(X)
    z = np.random.default_rng(seed).standard_normal(6)
    w = cp.Variable(6)
    gauge = cp.normNuc(X @ cp.diag(w))
    best = cp.Problem(cp.Maximize(z @ w), [gauge <= 1]).solve(solver="SCS", eps=1e-7)
    low, high = norm.polar_bounds(z)
    assert low <= high
    assert_allclose([low, high], [best, best], rtol=1e-3)
    fit = solve_sum(X, y, norm=norm, level=0.05, tol=1e-3)
    model = 0.5 * cp.sum_squares(X @ w - y) + 0.05 * gauge
    optimum = cp.Problem(cp.Minimize(model)).solve(solver="SCS", eps=1e-7)
    assert fit.objective >= optimum * (1 - 1e-4)
    assert fit.objective - optimum <= fit.gap + 1e-4 * optimum
    assert fit.relative_gap <= 2e-2
    with pytest.raises(ValueError, match="columns"):
        norm.on(5)
