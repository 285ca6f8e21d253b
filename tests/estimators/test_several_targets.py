"""Several targets and several classes together: cross-validation, paths and solves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskElasticNetCV, MultiTaskLasso
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    norms,
    paths,
    solve,
)
from atomlearn.designs import Tasks


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8)) + 3
    Y = X[:, :3] @ rng.standard_normal((3, 3)) + rng.standard_normal((60, 3)) + 5
    return X, Y


def test_search_is_that_of_scikit_learn(data: Any) -> None:
    X, Y = data
    folds = KFold(4)
    ratios = [0.5, 0.9]
    known: dict[str, Any] = {"l1_ratio": ratios, "cv": folds, "tol": 1e-10}
    theirs = MultiTaskElasticNetCV(alphas=10, eps=1e-2, max_iter=100_000, **known).fit(X, Y)
    ours = AtomicRegressorCV("rows", n_alphas=10, **known).fit(X, Y)
    assert ours.status_.is_converged
    assert ours.l1_ratio_ == theirs.l1_ratio_
    assert_allclose(ours.alphas_, theirs.alphas_)
    assert_allclose(ours.alpha_, theirs.alpha_)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-8)
    splits = [ours.cv_results_[f"split{k}_test_score"] for k in range(4)]
    # Their error is a mean over targets, ours half of a sum.
    scores = -2 * np.transpose(splits).reshape(theirs.mse_path_.shape) / Y.shape[1]
    assert_allclose(scores, theirs.mse_path_, rtol=1e-7)


def test_classes_together_are_chosen_by_the_fits_of_each_fold() -> None:
    X, y = load_iris(return_X_y=True)
    folds = list(StratifiedKFold(3).split(X, y))
    alphas = np.geomspace(0.1, 0.001, 4)
    joint: dict[str, Any] = {"multi_class": "multinomial", "tol": 1e-9}
    model = AtomicClassifierCV("rows", alphas=alphas, cv=folds, **joint).fit(X, y)
    for number, (train, test) in enumerate(folds):
        for level, alpha in enumerate(alphas):
            alone = AtomicClassifier("rows", alpha=alpha, **joint).fit(X[train], y[train])
            lost = log_loss(y[test], alone.predict_proba(X[test]))
            assert_allclose(model.cv_results_[f"split{number}_test_score"][level], -lost, rtol=1e-4)
    assert model.predict_proba(X).shape == (150, 3)


def test_weights_and_offsets_of_rows_are_those_of_the_folds(data: Any) -> None:
    X, Y = data
    rng = np.random.default_rng(1)
    weight, offset = rng.integers(1, 4, 60), rng.standard_normal((60, 3))
    folds = list(KFold(3).split(X))
    repeated = np.repeat(np.arange(60), weight)
    of_copies = [tuple(np.flatnonzero(np.isin(repeated, part)) for part in fold) for fold in folds]
    options: dict[str, Any] = {"alphas": [1.0, 0.1, 0.01], "tol": 1e-9}
    one = AtomicRegressorCV("rows", cv=folds, **options).fit(X, Y, weight, offset)
    other = AtomicRegressorCV("rows", cv=of_copies, **options)
    other.fit(X[repeated], (Y - offset)[repeated])
    key = "mean_test_score"
    # Weights of rows are divided by their sum, as the number of copies is.
    assert_allclose(one.cv_results_[key], other.cv_results_[key], rtol=1e-6)
    assert_allclose(one.coef_, other.coef_, atol=1e-6)


def test_scorers_candidates_and_one_column(data: Any) -> None:
    X, Y = data
    candidates = ["rows", "trace", norms.Groups([[0, 1, 2], [3, 4]])]
    model = AtomicRegressorCV(candidates, n_alphas=5, cv=3, scoring="r2", standardize=True)
    model.fit(X, Y)
    assert model.norm_ in candidates or isinstance(model.norm_, norms.Groups)
    assert model.score(X, Y) > 0.5
    one = AtomicRegressorCV("rows", n_alphas=5, cv=3)
    assert one.fit(X, Y[:, :1]).coef_.shape == (1, 8)
    assert one.fit(X, Y[:, 0]).coef_.shape == (8,)


def test_search_that_is_cut_short_says_so(data: Any) -> None:
    X, Y = data
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = AtomicRegressorCV("rows", time_limit=1e-3).fit(X, Y)
    assert not model.status_.is_converged
    assert any("cut short" in str(w.message) for w in found if w.category is ConvergenceWarning)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relax": 0.5}, "relax is for one target"),
        ({"until": paths.NumberOfFeatures(2)}, "until=.* is for one target"),
        ({"norms": norms.KSupport()}, "give k"),
    ],
)
def test_what_is_for_one_target_says_so(data: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AtomicRegressorCV(**{"norms": "rows", **options}).fit(*data)


@pytest.mark.parametrize("as_matrix", [np.asarray, sparse.csc_array], ids=["dense", "sparse"])
def test_solve_and_path_fit_an_intercept_for_each_target(data: Any, as_matrix: Any) -> None:
    X, Y = data
    theirs = MultiTaskLasso(0.2, tol=1e-12, max_iter=100_000).fit(X, Y)
    found = solve(as_matrix(X), Y, norm="rows", alpha=0.2, tol=1e-11)
    assert found.converged
    assert_allclose(found.coef, theirs.coef_.T, atol=1e-8)
    assert_allclose(found.intercept, theirs.intercept_, atol=1e-7)
    assert_allclose(found.predict(X), theirs.predict(X), atol=1e-7)
    line = paths.path(as_matrix(X), Y, norm="rows", alphas=[1.0, 0.2], tol=1e-11)
    assert line.converged
    assert line.intercepts.shape == (2, 3)
    assert_allclose(line.intercepts[1], theirs.intercept_, atol=1e-7)
    linear = line.predict(Tasks(X, 3))[1]
    assert_allclose(linear.reshape(60, 3), theirs.predict(X), atol=1e-7)
    again = solve(as_matrix(X), Y, norm="rows", alpha=0.2, tol=1e-9, warm_start=found)
    assert again.iterations <= found.iterations


def test_intercepts_of_other_losses_are_those_of_the_estimator(data: Any) -> None:
    X, Y = data
    free = {"unpenalized": [7]}
    options: dict[str, Any] = {"alpha": 0.1, "loss": "huber", "tol": 1e-10, **free}
    found = solve(X, Y, norm="rows", **options)
    model = AtomicRegressor("rows", **options).fit(X, Y)
    assert found.converged
    assert_allclose(found.coef.T, model.coef_, atol=1e-5)
    assert_allclose(found.intercept, model.intercept_, atol=1e-5)
    assert found.verify().gap <= 1e-8


def test_gaps_are_filled_within_folds() -> None:
    """The scores of a fold are those of gaps filled with the medians of its training rows."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.standard_normal((60, 4)), columns=list("abcd"))
    Y = np.column_stack([X["a"] - X["b"], X["a"] + X["c"]]) + 0.2 * rng.standard_normal((60, 2))
    X.iloc[::3, 0] = np.nan
    X.iloc[41:, 0] += 50.0  # a median of all rows would be another one
    train, test = np.arange(40), np.arange(40, 60)
    alphas = [0.3, 0.1]
    gaps = AtomicRegressorCV("rows", cv=[(train, test)], alphas=alphas).fit(X, Y)
    filled = X.fillna(X.iloc[train].median())
    known = AtomicRegressorCV("rows", cv=[(train, test)], alphas=alphas).fit(filled, Y)
    both = (model.cv_results_["mean_test_score"] for model in (gaps, known))
    assert_allclose(*both, rtol=1e-6)


def test_intercept_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="True or False, got 'yes'"):
        solve(np.eye(4), np.eye(4)[:, :2], norm="rows", alpha=0.1, fit_intercept="yes")


@pytest.mark.parametrize("shape", [(80, 30), (40, 90)])
def test_correlated_columns_of_many_targets_end_as_in_scikit_learn(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    X = 0.4 * rng.standard_normal(shape) + rng.standard_normal((shape[0], 1))
    Y = X[:, :6] @ rng.standard_normal((6, 12)) + rng.standard_normal((shape[0], 12))
    theirs = MultiTaskLasso(0.1, tol=1e-13, max_iter=1_000_000).fit(X, Y)
    ours = AtomicRegressor("rows", alpha=0.1, tol=1e-11).fit(X, Y)
    assert ours.status_.is_converged
    assert 6 < np.count_nonzero(theirs.coef_.any(axis=0)) < shape[1]
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
