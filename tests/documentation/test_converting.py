"""The table of docs/converting.md: the same problem in scikit-learn's parameters and in ours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from atomlearn import norms, solve

Array = NDArray[np.float64]
N_SAMPLES, N_FEATURES = 60, 12
#: A relative gap g bounds the error of strongly convex problems by sqrt(2 g F / least curvature):
#: 4.2e-3 at g = 1e-6 for the flattest of these. A level off by a tenth shows as 8e-3 or more.
AGREEMENT = 5e-3


@pytest.fixture
def data() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    target = X[:, :4].sum(axis=1) + rng.standard_normal(N_SAMPLES)
    return X, target, np.where(target > 0, 1.0, -1.0)


def ours(
    X: Array, y: Array, loss: str, norm: str, form: str, level: float, tau: float = 0.0
) -> Array:
    atoms = {"l1": norms.L1(), "l2": norms.L2()}[norm]
    result = solve(X, y, loss=loss, norm=atoms, form=form, level=level, tau=tau, gap=1e-6)
    assert result.converged
    return np.asarray(result.coef)


def test_lasso(data: tuple[Array, Array, Array]) -> None:
    X, target, _ = data
    theirs = Lasso(alpha=0.1, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, target)
    level = N_SAMPLES * 0.1
    coef = ours(X, target, "squared", "l1", "penalized", level)
    np.testing.assert_allclose(coef, theirs.coef_, atol=AGREEMENT)
    assert np.count_nonzero(coef) < N_FEATURES


def test_elastic_net(data: tuple[Array, Array, Array]) -> None:
    X, target, _ = data
    alpha, ratio = 0.2, 0.6
    model = ElasticNet(alpha=alpha, l1_ratio=ratio, fit_intercept=False, tol=1e-12)
    theirs = model.set_params(max_iter=100_000).fit(X, target)
    level, tau = N_SAMPLES * alpha * ratio, N_SAMPLES * alpha * (1 - ratio)
    coef = ours(X, target, "squared", "l1", "penalized", level, tau)
    np.testing.assert_allclose(coef, theirs.coef_, atol=AGREEMENT)


def test_ridge(data: tuple[Array, Array, Array]) -> None:
    X, target, _ = data
    theirs = Ridge(alpha=3.0, fit_intercept=False).fit(X, target)
    coef = ours(X, target, "squared", "l2", "squared", 3.0)
    np.testing.assert_allclose(coef, theirs.coef_, atol=AGREEMENT)


def test_logistic_regression_l1(data: tuple[Array, Array, Array]) -> None:
    X, _, labels = data
    model = LogisticRegression(C=0.3, l1_ratio=1.0, solver="saga", fit_intercept=False)
    theirs = model.set_params(tol=1e-12, max_iter=200_000).fit(X, labels)
    coef = ours(X, labels, "logistic", "l1", "penalized", 1 / 0.3)
    np.testing.assert_allclose(coef, theirs.coef_[0], atol=AGREEMENT)


def test_logistic_regression_l2(data: tuple[Array, Array, Array]) -> None:
    X, _, labels = data
    model = LogisticRegression(C=0.3, fit_intercept=False, tol=1e-12, max_iter=10_000)
    theirs = model.fit(X, labels)
    coef = ours(X, labels, "logistic", "l2", "squared", 1 / 0.3)
    np.testing.assert_allclose(coef, theirs.coef_[0], atol=AGREEMENT)


@pytest.mark.parametrize(
    ("penalty", "form"), [("l1", "penalized"), ("l2", "squared")], ids=["l1", "l2"]
)
def test_linear_svc(data: tuple[Array, Array, Array], penalty: str, form: str) -> None:
    X, _, labels = data
    model = LinearSVC(C=0.3, penalty=penalty, dual=False, fit_intercept=False, tol=1e-10)
    theirs = model.set_params(max_iter=200_000).fit(X, labels)
    coef = ours(X, labels, "squared_hinge", penalty, form, 1 / (2 * 0.3))
    np.testing.assert_allclose(coef, theirs.coef_[0], atol=AGREEMENT)
