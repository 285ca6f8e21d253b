"""Counts of successes: the fits of a row for each trial, and of statsmodels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, paths, solve


@pytest.fixture(scope="module")
def trials() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    total = rng.integers(0, 12, 60)
    successes = rng.binomial(total, 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5, 0, 0])))
    return X, np.column_stack([successes, total - successes])


def expanded(X: Any, counts: Any) -> tuple[Any, Any, Any]:
    """Return a row for the successes and one for the failures of each row, with weights."""
    n = len(X)
    return np.vstack([X, X]), np.repeat([1.0, -1.0], n), counts.T.reshape(-1).astype(float)


@pytest.mark.parametrize("options", [{}, {"l1_ratio": 0.5}, {"unpenalized": [1]}])
def test_two_columns_are_rows_with_weights(trials: Any, options: Any) -> None:
    X, counts = trials
    X2, y2, weight = expanded(X, counts)
    found = solve(X, counts, loss="binomial", alpha=0.03, tol=1e-10, **options)
    rows = solve(X2, y2, loss="logistic", sample_weight=weight, alpha=0.03, tol=1e-10, **options)
    assert found.converged
    assert_allclose(found.objective, rows.objective, rtol=1e-9)
    assert_allclose(found.coef, rows.coef, atol=1e-5)
    assert found.verify().lower <= rows.objective


def test_estimator_and_path_take_counts(trials: Any) -> None:
    X, counts = trials
    X2, y2, weight = expanded(X, counts)
    model = AtomicRegressor(loss="binomial", alpha=0.03, tol=1e-9).fit(X, counts)
    classes = AtomicClassifier(alpha=0.03, tol=1e-9).fit(X2, y2, sample_weight=weight)
    assert_allclose(model.coef_, classes.coef_[0], atol=1e-4)
    assert_allclose(model.predict(X), classes.predict_proba(X)[:, 1], atol=1e-4)
    assert 0.2 < model.score(X, counts) < 1.0
    path = paths.path(X, counts, loss="binomial", n_alphas=4, tol=1e-8)
    other = paths.path(X2, y2, loss="logistic", sample_weight=weight, n_alphas=4, tol=1e-8)
    assert_allclose(path.alphas, other.alphas, rtol=1e-9)
    assert_allclose(np.asarray(path.coefs), np.asarray(other.coefs), atol=1e-4)


def test_cross_validation_weighs_rows_by_their_trials(trials: Any) -> None:
    X, counts = trials
    shares = counts[:, 0] / np.maximum(counts.sum(axis=1), 1)
    model = AtomicRegressorCV(loss="binomial", cv=3, n_alphas=5).fit(X, counts)
    other = AtomicRegressorCV(loss="binomial", cv=3, n_alphas=5)
    other.fit(X, shares, sample_weight=counts.sum(axis=1))
    assert model.alpha_ == other.alpha_
    assert_allclose(model.coef_, other.coef_, atol=1e-9)


def test_free_columns_are_the_model_of_statsmodels(trials: Any) -> None:
    api = pytest.importorskip("statsmodels.api")
    X, counts = trials
    kept = counts.sum(axis=1) > 0
    theirs = api.GLM(counts[kept], api.add_constant(X[kept]), family=api.families.Binomial())
    model = AtomicRegressor(loss="binomial", alpha=0.1, unpenalized=range(5), tol=1e-12)
    model.fit(X, counts)
    ours = np.append(model.intercept_, model.coef_)
    assert_allclose(ours, theirs.fit(tol=1e-12).params, rtol=1e-6)


def test_r_prints_these_numbers_of_dose_and_deaths() -> None:
    """Deaths of 20 budworms at six doses: R's glm of both sexes, Venables and Ripley, 7.2."""
    dose = np.tile(np.arange(6.0), 2)
    male = np.repeat([1.0, 0.0], 6)
    dead = np.array([1, 4, 9, 13, 18, 20, 0, 2, 6, 10, 12, 16])
    X = np.column_stack([male, dose])
    model = AtomicRegressor(loss="binomial", alpha=0.1, unpenalized=[0, 1], tol=1e-12)
    model.fit(X, np.column_stack([dead, 20 - dead]))
    assert_allclose(np.append(model.intercept_, model.coef_), [-3.4732, 1.1007, 1.0642], atol=5e-5)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([0.2, 1.5, 0.1]), r"shares of successes in \[0, 1\]"),
        (np.array([[1, 2, 3]] * 3), "two columns of numbers >= 0"),
        (np.array([[1, -2]] * 3), "two columns of numbers >= 0"),
    ],
)
def test_other_targets_are_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(np.eye(3), y, loss="binomial", alpha=0.1)
    with pytest.raises(ValueError, match=message):
        AtomicRegressor(loss="binomial").fit(np.eye(3), y)
