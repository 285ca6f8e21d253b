"""Kernels as groups of columns: products, group scores, fits against the dual, new data."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.model_selection import cross_val_score

from atomlearn import AtomicClassifier, MultipleKernelClassifier, MultipleKernelRegressor, norms
from atomlearn.designs import KernelOn, Kernels
from atomlearn.testing.designs import DesignChecks
from tests.oracles.sums import solve_sum


def data(n=30, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def laplacian_of_the_last(A, B):
    return np.exp(-np.abs(A[:, 3, None] - B[None, :, 3]))


def some_kernels():
    return [
        KernelOn("rbf", (0,), (("gamma", 0.5),)),
        KernelOn("linear"),
        KernelOn("polynomial", (1, 2), (("degree", 2), ("gamma", 1.0), ("coef0", 1.0))),
        laplacian_of_the_last,
    ]


class TestKernels(DesignChecks):
    """The columns are any with the right products (below); these are what the design says."""

    def build(self):
        design = Kernels(some_kernels(), data(), rank=6)
        return design, np.asarray(design.gather(np.arange(design.shape[1])))


@pytest.mark.parametrize("precomputed", [False, True])
def test_columns_at_full_rank_have_the_kernels_for_products(precomputed):
    X = data()
    matrices = [kernel(X, X) for kernel in some_kernels()]
    given = matrices if precomputed else some_kernels()
    design = Kernels(given, None if precomputed else X, rank=30, tol=0.0, normalize=False)
    v = np.random.default_rng(1).standard_normal(30)
    norms_of = design.scores(v).group_norms(design.groups, design.map.n_terms)
    for number, K in enumerate(matrices):
        Z = np.asarray(design.gather(np.flatnonzero(design.groups == number)))
        assert_allclose(Z @ Z.T, K, atol=1e-6)
        assert norms_of[number] == pytest.approx(np.sqrt(v @ K @ v), rel=1e-6)
    assert design.maps.maps[1].pivots.size == 4  # the rank of the linear kernel


def test_normalized_kernels_have_variance_one():
    design = Kernels([KernelOn("linear"), lambda A, B: 1e4 * A @ B.T], data(), rank=3)
    Z = np.asarray(design.gather(np.arange(design.shape[1])))
    totals = np.bincount(design.groups, weights=Z.var(axis=0))
    assert_allclose(totals, 1.0)
    residuals = [map.residual for map in design.maps.maps]
    assert residuals[0] == pytest.approx(residuals[1])
    assert 0.0 < residuals[0] < 0.5


@pytest.mark.parametrize("precomputed", [False, True])
def test_new_rows_become_the_same_columns(precomputed):
    X = data()
    kernels = some_kernels()
    if precomputed:
        design = Kernels([k(X, X) for k in kernels], rank=8)
        again = Kernels.from_map([k(X[:7], X) for k in kernels], design.maps)
    else:
        design = Kernels(kernels, X, rank=8)
        again = Kernels.from_map(X[:7], design.maps)
    columns = np.arange(design.shape[1])
    expected = np.asarray(design.gather(columns))[:7]
    assert_allclose(np.asarray(again.gather(columns)), expected, atol=1e-10)


def test_the_fit_is_that_of_simple_mkl():
    """min over d in the simplex, w of 1/2 sum_m ||w_m||^2 / d_m + C/2 sum hinge^2, in the dual.

    max a'1 - a'a / (2 C) - 1/2 max_m (a*y)'K_m (a*y), a >= 0, a'y = 0: no columns anywhere.
    """
    X = data(40)
    y = np.where(X[:, 0] ** 2 + 0.3 * X[:, 1] > 0.6, 1.0, -1.0)
    matrices = [K(X, X) for K in some_kernels()]
    design = Kernels(matrices, rank=40, tol=0.0, normalize=False)
    norm = norms.Groups(design.groups)
    C = 2.0
    result = solve_sum(
        design, y, loss="squared_hinge", norm=norm, form="squared", level=1 / C, fit_intercept=True,
        tol=1e-9,
    )  # fmt: skip
    assert result.converged
    a, t = cp.Variable(40, nonneg=True), cp.Variable()
    factors = [np.linalg.cholesky(K + 1e-9 * np.eye(40)) for K in matrices]
    limits = [cp.sum_squares(L.T @ cp.multiply(a, y)) <= t for L in factors]
    objective = cp.sum(a) - cp.sum_squares(a) / (2 * C) - 0.5 * t
    problem = cp.Problem(cp.Maximize(objective), [*limits, a @ y == 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-7, tol_gap_abs=1e-7, tol_feas=1e-7)
    assert C * result.objective == pytest.approx(problem.value, rel=1e-5)
    # The kernels in use are those whose constraint is active.
    sizes = design.sizes_of(result.columns, result.weights)
    slack = np.array([problem.constraints[m].dual_value for m in range(4)]).ravel()
    assert_allclose(sizes / sizes.sum(), slack / slack.sum(), atol=1e-3)


def test_estimators_predict_and_generalize():
    X, y = make_moons(200, noise=0.15, random_state=0)
    assert cross_val_score(MultipleKernelClassifier(rank=40), X, y, cv=3).min() > 0.9
    X = data(200, 3, seed=5)
    target = np.sin(2 * X[:, 1])
    regressor = MultipleKernelRegressor(rank=40, alpha=1e-3).fit(X[:150], target[:150])
    assert regressor.score(X[150:], target[150:]) > 0.9


def test_precomputed_kernels_through_the_linear_estimators():
    X = data(60)
    y = X[:, 0] > 0
    matrices = [k(X, X) for k in some_kernels()]
    design = Kernels(matrices, rank=10)
    model = AtomicClassifier("groups", 0.01, form="squared").fit(design, y)
    again = Kernels.from_map(matrices, design.maps)
    assert_array_equal(model.predict(again), model.predict(design))
    assert model.score(design, y) > 0.95


@pytest.mark.parametrize(
    ("kernels", "X", "message"),
    [
        ([], None, "empty"),
        ("rbf", None, "must be a list"),
        ([np.ones((2, 3))], None, "square matrix"),
        ([np.array([[1.0, 2.0], [0.0, 1.0]])], None, "not symmetric"),
        ([np.array([[1.0, 2.0], [2.0, 1.0]])], None, "not positive semidefinite"),
        ([-np.eye(2)], None, "not positive semidefinite"),
        ([np.full((2, 2), np.nan)], None, "NaN"),
        ([np.eye(2), np.eye(3)], None, "3 samples, the others of 2"),
        ([KernelOn("linear")], None, "needs X"),
        ([KernelOn("linear"), np.eye(30)], data(), "all matrices or all functions"),
        ([lambda A, B: np.ones(3)], data(), "must have shape"),
    ],
)
def test_what_is_no_kernel_is_refused(kernels, X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Kernels(kernels, X)
