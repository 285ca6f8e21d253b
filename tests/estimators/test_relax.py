"""Second fits without a penalty on what was selected."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, norms


def table(seed=0, n_samples=150, n_features=30):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) + 1.0
    z = 2.0 * X[:, 0] - X[:, 5] + 0.5 * rng.standard_normal(n_samples)
    return X, z


def test_relax_one_is_least_squares_on_what_was_selected():
    X, z = table()
    plain = AtomicRegressor(alpha=0.3, unpenalized=[1]).fit(X, z)
    relaxed = AtomicRegressor(alpha=0.3, unpenalized=[1], relax=1.0).fit(X, z)
    kept = plain.selected_
    oracle = LinearRegression().fit(X[:, kept], z)
    assert_allclose(relaxed.coef_[kept], oracle.coef_, atol=1e-8)
    assert_allclose(relaxed.intercept_, oracle.intercept_, atol=1e-8)
    half = AtomicRegressor(alpha=0.3, unpenalized=[1], relax=0.5).fit(X, z)
    assert_allclose(half.coef_, 0.5 * (plain.coef_ + relaxed.coef_), atol=1e-6)


def test_relax_of_classes():
    X, z = table(1)
    y = z > 1
    plain = AtomicClassifier(alpha=0.15).fit(X, y)
    relaxed = AtomicClassifier(alpha=0.15, relax=1.0).fit(X, y)
    kept = plain.selected_
    oracle = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X[:, kept], y)
    assert_allclose(relaxed.coef_[0, kept], oracle.coef_[0], rtol=1e-4)


def test_cross_validation_chooses_how_much():
    X, z = table(2)
    model = AtomicRegressorCV(relax=(0.0, 0.5, 1.0), n_alphas=8, cv=3).fit(X, z)
    plain = AtomicRegressorCV(n_alphas=8, cv=3).fit(X, z)
    assert model.relax_ in (0.5, 1.0)
    assert model.cv_results_["mean_test_score"].max() > plain.cv_results_["mean_test_score"].max()
    again = AtomicRegressor(alpha=model.alpha_, relax=model.relax_).fit(X, z)
    assert_allclose(model.coef_, again.coef_, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        AtomicRegressor(alpha=0.1),
        AtomicRegressor(norms.KSupport(4), form="squared", alpha=0.01),
        AtomicRegressorCV(n_alphas=5, cv=3),
    ],
    ids=["l1", "k-support", "cv"],
)
def test_select_from_model_keeps_what_was_selected(model):
    X, z = table(6)
    selector = SelectFromModel(model).fit(X, z)
    chosen = selector.estimator_.selected_
    assert selector.get_support(indices=True).tolist() == chosen.tolist()


def test_bad_parameters():
    X, z = table(4, 20, 6)
    for settings, message in (({"relax": 2.0}, "relax must be a number in"),):
        with pytest.raises((ValueError, TypeError), match=message):
            AtomicRegressor(**settings).fit(X, z)
    with pytest.raises(ValueError, match="one target at a time"):
        AtomicRegressor(relax=1.0).fit(X, np.column_stack([z, z]))
