"""standardize: the same fit as to columns scaled beforehand, in the units of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import StandardScaler, scale

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    AtomicSurvival,
)
from atomlearn.losses import survival_target

RNG = np.random.default_rng(0)
Z = RNG.standard_normal((90, 8))
X = Z * np.geomspace(1e-2, 1e2, 8) + np.arange(8.0)
Y = Z[:, :3].sum(axis=1) + 0.5 * RNG.standard_normal(90)
TARGETS = np.column_stack([Y, Y - Z[:, 4]])
MODELS = [
    (AtomicRegressor(alpha=0.1, tol=1e-11), Y),
    (AtomicRegressor(alpha=0.1, l1_ratio=0.5, relax=0.3, tol=1e-11), Y),
    (AtomicRegressor("rows", alpha=0.1, tol=1e-11), TARGETS),
    (AtomicRegressor(alpha=0.1, unpenalized=[4], tol=1e-11), Y),
    (AtomicClassifier(alpha=0.02, tol=1e-11), Y > 0),
    (AtomicClassifier(alpha=0.02, tol=1e-11), np.digitize(Y, [-0.5, 0.5])),
    (AtomicClassifier("rows", alpha=0.02, multi_class="multinomial"), np.digitize(Y, [-0.5, 0.5])),
    (AtomicSurvival(alpha=0.05, tol=1e-11), survival_target(Z[:, 0] > -1, np.exp(-Y))),
    (AtomicRegressorCV(n_alphas=4, l1_ratio=[0.5, 1.0], tol=1e-11), Y),
    (AtomicClassifierCV(n_alphas=4, tol=1e-11), Y > 0),
]


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda given: type(given).__name__)
def test_it_is_the_fit_to_scaled_columns(model: Any, y: Any) -> None:
    scaler = StandardScaler().fit(X)
    expected = model.fit(scale(X), y)
    coef, intercept = np.array(expected.coef_), np.array(expected.intercept_)
    decisions = expected._linear(scale(X))
    found = model.set_params(standardize=True).fit(X, y)
    np.testing.assert_allclose(found.coef_, coef / scaler.scale_, atol=1e-7)
    if not isinstance(model, AtomicSurvival):
        shift = (np.atleast_2d(found.coef_) @ scaler.mean_).reshape(intercept.shape)
        np.testing.assert_allclose(found.intercept_, intercept - shift, atol=1e-6)
        np.testing.assert_allclose(found._linear(X), decisions, atol=1e-6)


def test_intervals_are_those_of_scaled_columns() -> None:
    plain = AtomicRegressorCV(n_alphas=4).fit(scale(X), Y)
    found = AtomicRegressorCV(n_alphas=4, standardize=True).fit(X, Y)
    for expected, given in zip(
        plain.predict(scale(X), interval=0.8), found.predict(X, interval=0.8), strict=True
    ):
        np.testing.assert_allclose(given, expected, atol=1e-6)


def test_sparse_columns_are_only_divided() -> None:
    thin = np.where(np.abs(Z) > 1.0, X, 0.0)
    found = AtomicRegressor(alpha=0.1, standardize=True, tol=1e-11).fit(csr_array(thin), Y)
    expected = AtomicRegressor(alpha=0.1, tol=1e-11).fit(thin / thin.std(axis=0), Y)
    np.testing.assert_allclose(found.coef_, expected.coef_ / thin.std(axis=0), atol=1e-7)


def test_a_warm_start_begins_at_the_last_fit() -> None:
    model = AtomicRegressor(alpha=0.1, standardize=True, warm_start=True).fit(X, Y)
    first = model.n_iter_
    assert model.fit(X, Y).n_iter_ <= first
    assert model.n_iter_ == 1
