"""Offsets and unpenalized columns, through estimators, paths and cross-validation."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.linear_model import LinearRegression, LogisticRegression

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
    norms,
    paths,
    solve,
)
from atomlearn.result import Status


def table(seed=0, n_samples=80, n_features=12):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    z = X[:, 0] - X[:, 5] + rng.standard_normal(n_samples)
    return X, z, rng.standard_normal(n_samples)


def test_an_offset_of_the_squared_loss_is_taken_off_the_target():
    X, z, offset = table()
    model = AtomicRegressor(alpha=0.1, unpenalized=[2]).fit(X, z, offset=offset)
    other = AtomicRegressor(alpha=0.1, unpenalized=[2]).fit(X, z - offset)
    assert_allclose(model.coef_, other.coef_, atol=1e-10)
    assert_allclose(model.predict(X, offset), other.predict(X) + offset)
    with pytest.raises(ValueError, match="offset must have shape"):
        model.predict(X, offset[:-1])


def test_exposure_makes_counts_rates():
    rng = np.random.default_rng(3)
    X, exposure = rng.standard_normal((300, 5)), rng.uniform(1.0, 50.0, 300)
    counts = rng.poisson(exposure * np.exp(0.3 * X[:, 1] - 1.0)).astype(float)
    model = AtomicRegressor(loss="poisson", alpha=1e-4).fit(X, counts, offset=np.log(exposure))
    assert_allclose(model.coef_, [0, 0.3, 0, 0, 0], atol=0.05)
    rates = AtomicRegressor(loss="poisson", alpha=1e-4 / exposure.mean())
    rates.fit(X, counts / exposure, sample_weight=exposure)
    assert_allclose(model.coef_, rates.coef_, atol=1e-4)
    assert_allclose(model.predict(X, np.log(exposure)), exposure * rates.predict(X), rtol=1e-3)
    assert_allclose(
        np.exp(model.decision_function(X, np.log(exposure))), model.predict(X, np.log(exposure))
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_have_free_columns_of_their_own(classes):
    X, z, _ = table(1, 150)
    y = np.digitize(z, np.linspace(-1, 1, classes + 1)[1:-1])
    model = AtomicClassifier(alpha=10.0, unpenalized=[0]).fit(X, y)
    assert model.status_.is_converged
    assert model.selected_.tolist() == [0]
    assert (model.coef_[:, 0] != 0).all()


def test_several_classes_together_and_several_targets():
    X, z, _ = table(2, 150)
    y = np.digitize(z, [-0.7, 0.7])
    model = AtomicClassifier("rows", alpha=10.0, multi_class="multinomial", unpenalized=[0, 5])
    model.fit(X, y)
    assert model.status_.is_converged
    assert model.selected_.tolist() == [0, 5]
    plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X[:, [0, 5]], y)
    assert_allclose(model.predict_proba(X), plain.predict_proba(X[:, [0, 5]]), atol=1e-5)
    Y = np.column_stack([z, X[:, 1] - z])
    tasks = AtomicRegressor("trace", alpha=10.0, unpenalized=[0, 5]).fit(X, Y)
    plain = LinearRegression().fit(X[:, [0, 5]], Y)
    assert_allclose(tasks.coef_[:, [0, 5]], plain.coef_, atol=1e-6)
    assert_allclose(tasks.intercept_, plain.intercept_, atol=1e-6)


def test_paths_and_folds_have_them_too():
    X, z, offset = table(4, 120)
    found = paths.path(X, z, n_alphas=5, fit_intercept=True, offset=offset, unpenalized=[1])
    single = solve(X, z, alpha=found.alphas[3], offset=offset, unpenalized=[1], tol=1e-9)
    assert_allclose(found.results[3].coef, single.coef, atol=1e-4)
    assert all(1 in result.columns for result in found.results)
    model = AtomicRegressorCV(unpenalized=[1], n_alphas=5, cv=3).fit(X, z, offset=offset)
    other = AtomicRegressorCV(unpenalized=[1], n_alphas=5, cv=3).fit(X, z - offset)
    assert model.alpha_ == pytest.approx(other.alpha_)
    assert_allclose(
        model.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], rtol=1e-5
    )
    scored = AtomicRegressorCV(unpenalized=[1], n_alphas=5, cv=3, scoring="r2")
    scored.fit(X, z, offset=offset)
    assert scored.cv_results_["mean_test_score"].max() > 0.3
    y = z + offset > 0
    classes = AtomicClassifierCV(unpenalized=[1], n_alphas=5, cv=3).fit(X, y, offset=offset)
    assert classes.score(X, y, offset=offset) > classes.score(X, y)


def test_groups_and_curves():
    X, z, _ = table(5)
    groups = norms.Groups([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]])
    model = AtomicRegressor(groups, alpha=100.0, unpenalized=[4]).fit(X, z)
    assert model.selected_.tolist() == [4]
    curves = AtomicRegressor("groups", alpha=100.0, features="splines", unpenalized=[5]).fit(X, z)
    assert {name.split("[")[0].split(">")[0].split("<")[0] for name in curves.selected_names_} == {
        "x5"
    }


def test_offsets_of_several_classes_at_once_are_those_of_scipy():
    rng = np.random.default_rng(0)
    X, added = rng.standard_normal((150, 4)), rng.standard_normal((150, 3))
    y = np.argmax(X[:, :3] + added + rng.gumbel(size=(150, 3)), axis=1)
    Y = np.eye(3)[y]

    def mean_loss(parameters):
        Z = X @ parameters[:12].reshape(4, 3) + parameters[12:] + added
        return float((logsumexp(Z, axis=1) - (Y * Z).sum(axis=1)).mean())

    best = minimize(mean_loss, np.zeros(15), options={"gtol": 1e-7}).x
    model = AtomicClassifier(multi_class="multinomial", unpenalized=[0, 1, 2, 3])
    model.fit(X, y, offset=added)
    W, b = best[:12].reshape(4, 3), best[12:]
    # The same for all classes changes nothing.
    found = model.coef_ - model.coef_.mean(axis=0)
    assert_allclose(found, (W - W.mean(axis=1, keepdims=True)).T, atol=2e-4)
    assert_allclose(model.intercept_ - model.intercept_.mean(), b - b.mean(), atol=2e-4)
    assert model.score(X, y, offset=added) > model.score(X, y)
    features = FeatureGenerator(n_features=2, loss="logistic", standardize=True).fit(
        X, y, offset=added
    )
    assert features.selected_.size == 2
    with pytest.raises(ValueError, match="offset must have shape"):
        features.fit(X, y, offset=added[:, :2])


def test_an_index_of_names_is_names():
    frame = pd.DataFrame(table()[0], columns=list("abcdefghijkl"))
    y = frame["a"] - frame["f"]
    model = AtomicRegressor(alpha=1e3, unpenalized=frame.columns[:2]).fit(frame, y)
    assert model.selected_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="unpenalized: X does not have the column 'z'"):
        AtomicRegressor(unpenalized=["z"]).fit(frame, y)


def test_strong_and_heavy_free_columns_are_fitted():
    """The values of one column spread over hundreds of its median distance."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(1.2, (200, 2)) * 1e4
    y = rng.random(200) < 1 / (1 + np.exp(-3e-4 * X[:, 0]))
    assert AtomicClassifier(alpha=0.1, unpenalized=[0]).fit(X, y).status_.is_converged


def test_unpenalized_columns_are_kept_whatever_alpha():
    X, z, _ = table()
    model = AtomicRegressor(alpha=1e3, unpenalized=[2, 3]).fit(X, z)
    plain = LinearRegression().fit(X[:, [2, 3]], z)
    assert model.selected_.tolist() == [2, 3]
    assert_allclose(model.coef_[[2, 3]], plain.coef_, atol=1e-8)
    assert_allclose(model.intercept_, plain.intercept_, atol=1e-8)


def test_a_free_column_that_separates_the_classes_ends_a_search_of_levels() -> None:
    """No curvature is left there, and no step divides by it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = X[:, 0] + 0.3 * rng.normal(size=80)
    table = np.column_stack([5.0 * y, X])
    model = AtomicClassifierCV(norms.L1(), unpenalized=[0], n_alphas=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model.fit(table, y > 0)
    assert model.score(table, y > 0) == 1.0
    assert not model.coef_[0, 1:].any()


@pytest.mark.parametrize("labels", [False, True])
def test_generation_ends_beside_a_covariate_that_is_the_target(labels: bool) -> None:
    """It re-fitted rounding, 10 to 60 seconds a step of 120 samples."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 7))
    y = np.sign(X[:, 0]) if labels else X[:, 0]
    model = FeatureGenerator(
        n_features=5, unpenalized=[0], loss="logistic" if labels else "squared", standardize=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.set_params(time_limit=20.0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.status_ is not Status.TIME_LIMIT
