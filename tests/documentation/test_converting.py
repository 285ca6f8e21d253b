"""The table of docs/converting.md: the same problem in scikit-learn's parameters and in ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from atomlearn import solve

N_SAMPLES, N_FEATURES = 60, 12
#: A relative gap g bounds the error of strongly convex problems by sqrt(2 g F / least curvature):
#: 4.2e-3 at g = 1e-6 for the flattest of these. An alpha off by a tenth shows as 8e-3 or more.
AGREEMENT = 5e-3


#: A model of scikit-learn, and (loss, norm, form, alpha, l1_ratio) of ours.
TABLE = [
    (Lasso(alpha=0.1, max_iter=100_000), ("squared", "l1", "penalized", 0.1, 1.0)),
    (
        ElasticNet(alpha=0.2, l1_ratio=0.6, max_iter=100_000),
        ("squared", "l1", "penalized", 0.2, 0.6),
    ),
    (Ridge(alpha=3.0), ("squared", "l2", "squared", 3.0 / N_SAMPLES, 1.0)),
    (
        LogisticRegression(C=0.3, l1_ratio=1.0, solver="saga", max_iter=200_000),
        ("logistic", "l1", "penalized", 1 / (0.3 * N_SAMPLES), 1.0),
    ),
    (
        LogisticRegression(C=0.3, max_iter=10_000),
        ("logistic", "l2", "squared", 1 / (0.3 * N_SAMPLES), 1.0),
    ),
    (
        LinearSVC(C=0.3, penalty="l1", dual=False, max_iter=200_000),
        ("squared_hinge", "l1", "penalized", 1 / (0.6 * N_SAMPLES), 1.0),
    ),
    (LinearSVC(C=0.3, dual=False), ("squared_hinge", "l2", "squared", 1 / (0.6 * N_SAMPLES), 1.0)),
]


@pytest.mark.parametrize(("model", "given"), TABLE, ids=lambda value: str(value)[:40])
def test_a_row_of_the_table(model: Any, given: tuple[str, str, str, float, float]) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    target = X[:, :4].sum(axis=1) + rng.standard_normal(N_SAMPLES)
    y = np.where(target > 0, 1.0, -1.0) if is_classifier(model) else target
    theirs = clone(model).set_params(fit_intercept=False, tol=1e-11).fit(X, y)
    loss, norm, form, alpha, l1_ratio = given
    ours = solve(
        X,
        y,
        loss=loss,
        norm=norm,
        form=form,
        alpha=alpha,
        l1_ratio=l1_ratio,
        fit_intercept=False,
        tol=1e-6,
    )
    assert ours.converged
    np.testing.assert_allclose(ours.coef, np.ravel(theirs.coef_), atol=AGREEMENT)
