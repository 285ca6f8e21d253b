"""AtomicRegressorCV and AtomicClassifierCV: the choice, the refit, and what is routed where."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    norms,
)


def regression(n: int = 60, p: int = 20) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, X[:, :5].sum(axis=1) + rng.standard_normal(n) + 2.0


def labels() -> tuple[Any, Any]:
    X, y = regression()
    return X, np.where(y > 2.0, "yes", "no")


FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.mark.parametrize("form", ["penalized", "squared"])
def test_scores_are_those_of_a_grid_search(form: Any) -> None:
    X, y = regression()
    candidates = [norms.L1(), norms.KSupport(k=4)]
    alphas = [1.0, 0.3, 0.1, 0.03]
    scoring = "neg_mean_squared_error"
    model = AtomicRegressorCV(
        candidates, alphas, form=form, cv=FOLDS, scoring=scoring, tol=1e-7
    ).fit(X, y)
    grid = {"norm": candidates, "alpha": alphas}
    search = GridSearchCV(AtomicRegressor(form=form, tol=1e-7), grid, cv=FOLDS, scoring=scoring)
    search.fit(X, y)
    assert model.norm_ == search.best_params_["norm"]
    assert model.alpha_ == search.best_params_["alpha"]
    theirs = {
        (repr(q["norm"]), q["alpha"]): score
        for q, score in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        )
    }
    for q, score in zip(
        model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True
    ):
        assert score == pytest.approx(theirs[repr(q["norm"]), q["alpha"]], rel=1e-4)
    np.testing.assert_allclose(model.coef_, search.best_estimator_.coef_, atol=1e-4)


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "neg_log_loss"])
def test_scorers_of_labels_decisions_and_probabilities(scoring: str) -> None:
    X, y = labels()
    folds = list(StratifiedKFold(3).split(X, y))
    model = AtomicClassifierCV(alphas=[0.05], cv=folds, scoring=scoring, tol=1e-9).fit(X, y)
    for number, (train, test) in enumerate(folds):
        single = AtomicClassifier(alpha=0.05, tol=1e-9).fit(X[train], y[train])
        expected = get_scorer(scoring)(single, X[test], y[test])
        assert model.cv_results_[f"split{number}_test_score"][0] == pytest.approx(
            expected, rel=1e-4
        )
    assert model.score(X, y) == pytest.approx(get_scorer(scoring)(model, X, y))


def test_grids_begin_at_the_largest_useful_alpha_of_each_norm() -> None:
    X, y = regression()
    model = AtomicRegressorCV(["l1", norms.KSupport(k=3)], n_alphas=4, cv=3).fit(X, y)
    assert model.alphas_.shape == (2, 4)
    for norm, alphas in zip((norms.L1(), norms.KSupport(k=3)), model.alphas_, strict=True):
        empty = AtomicRegressor(norm, alphas[0] * (1 + 1e-9)).fit(X, y)
        assert not empty.coef_.any()
        some = AtomicRegressor(norm, alphas[0] * 0.98).fit(X, y)
        assert some.coef_.any()
    assert len(model.cv_results_["params"]) == 8
    single = AtomicRegressorCV(n_alphas=4, cv=3).fit(X, y)
    np.testing.assert_allclose(single.alphas_, model.alphas_[0])
    radii = AtomicRegressorCV(n_alphas=4, cv=3, form="constrained").fit(X, y)
    assert (np.diff(radii.alphas_) > 0).all()
    assert np.abs(radii.coef_).sum() <= radii.alpha_ * (1 + 1e-9)


def test_one_standard_error_selects_no_more_than_the_best() -> None:
    X, y = regression()
    best, sparser = (
        AtomicRegressorCV(n_alphas=10, cv=FOLDS, selection=rule).fit(X, y)
        for rule in ("best", "one_standard_error")
    )
    assert sparser.alpha_ > best.alpha_
    assert (sparser.coef_ != 0).sum() < (best.coef_ != 0).sum()
    results = best.cv_results_
    chosen = int(np.argmin(np.abs(results["param_alpha"] - sparser.alpha_)))
    top = int(np.argmax(results["mean_test_score"]))
    bound = results["mean_test_score"][top] - results["standard_error"][top]
    assert results["mean_test_score"][chosen] >= bound > results["mean_test_score"][chosen - 1]


def test_threads_sparse_and_pickles_change_nothing() -> None:
    X, y = regression()
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    settings = {"n_alphas": 5, "cv": 3}
    model = AtomicRegressorCV(**settings).fit(X, y)
    threads = AtomicRegressorCV(**settings, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(threads.coef_, model.coef_, rtol=1e-12)
    for kind in (sparse.csr_array, sparse.csc_array):
        found = AtomicRegressorCV(**settings).fit(kind(X), y)
        assert found.alpha_ == pytest.approx(model.alpha_)
        np.testing.assert_allclose(found.coef_, model.coef_, atol=1e-5)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_sample_weights_are_repetitions() -> None:
    X, y = regression()
    weight = np.random.default_rng(3).integers(1, 4, y.size)
    folds = list(FOLDS.split(X))
    repeats = np.repeat(np.arange(y.size), weight)
    inside = [tuple(np.flatnonzero(np.isin(repeats, part)) for part in fold) for fold in folds]
    weighted = AtomicRegressorCV(n_alphas=5, cv=folds, tol=1e-9).fit(X, y, weight)
    repeated = AtomicRegressorCV(n_alphas=5, cv=inside, tol=1e-9).fit(X[repeats], y[repeats])
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"], rtol=1e-6
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


# --- metadata routing --------------------------------------------------------------------------


class GroupsSeen(GroupKFold):
    """GroupKFold that keeps the groups it was given."""

    seen: Any = None

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        type(self).seen = groups
        return super().split(X, y, groups)


def test_metadata_is_routed_to_splitter_and_scorer() -> None:
    X, y = regression()
    groups = np.arange(y.size) % 6
    weight = np.linspace(0.5, 1.5, y.size)
    seen = {}

    def score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        seen["weight"] = sample_weight
        return -float(np.average((model.predict(X) - y) ** 2, weights=sample_weight))

    with sklearn.config_context(enable_metadata_routing=True):
        model = AtomicRegressorCV(
            alphas=[0.1], cv=GroupsSeen(3), scoring="neg_mean_squared_error"
        ).set_fit_request(sample_weight=True)
        model.fit(X, y, groups=groups)
        np.testing.assert_array_equal(GroupsSeen.seen, groups)
        scorer = get_scorer("neg_mean_squared_error").set_score_request(sample_weight=True)
        model.set_params(scoring=scorer).fit(X, y, sample_weight=weight, groups=groups)
        assert model.score(X, y, sample_weight=weight) == pytest.approx(
            -float(np.average((model.predict(X) - y) ** 2, weights=weight))
        )
        nested = GridSearchCV(
            AtomicRegressor()
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=False),
            {"alpha": [0.1, 1.0]},
            cv=3,
        ).fit(X, y, sample_weight=weight)
        assert nested.best_params_ == {"alpha": 0.1}
    # Without routing, sample weights go to the scorer as in scikit-learn's own CV estimators.
    AtomicRegressorCV(alphas=[0.1], cv=FOLDS, scoring=score).fit(X, y, weight)
    assert seen["weight"] is not None
    assert len(seen["weight"]) == 20


def test_groups_reach_the_splitter_without_routing() -> None:
    X, y = regression()
    groups = np.arange(y.size) % 6
    AtomicRegressorCV(alphas=[0.1], cv=GroupsSeen(3)).fit(X, y, groups=groups)
    np.testing.assert_array_equal(GroupsSeen.seen, groups)
    with pytest.raises(ValueError, match="leave order out"):
        AtomicRegressorCV(cv=GroupKFold(3)).fit(X, y, groups=groups, order=groups)


# --- refusals ----------------------------------------------------------------------------------


def test_bad_parameters_are_refused() -> None:
    X, y = regression()
    for settings, error, message in (
        ({"norms": []}, ValueError, "norms is empty"),
        ({"norms": ["l1", norms.KSupport(k=-1)]}, ValueError, "k must be at least 1"),
        ({"alphas": []}, ValueError, "alphas must be a one-dimensional array of at least one"),
        ({"n_alphas": 0}, ValueError, "n_alphas must be at least 1"),
        ({"selection": "worst", "n_alphas": 2}, ValueError, "selection must be"),
        ({"cv": 1}, ValueError, "n_splits"),
        ({"scoring": "beauty"}, ValueError, "scoring"),
        ({"loss": "logistic"}, ValueError, "use AtomicClassifier"),
    ):
        model: Any = AtomicRegressorCV(**settings)  # type: ignore[arg-type]
        with pytest.raises(error, match=message):
            model.fit(X, y)


@pytest.mark.parametrize("classes", [False, True])
def test_without_a_refit_the_fit_of_the_training_rows_stays(classes: bool) -> None:
    """The hold-out of [A]: as a grid search over the training part, and a fit of it alone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X[:, 0] - X[:, 1] + rng.standard_normal(60)
    y = np.digitize(y, [-0.5, 0.5]) if classes else y
    Search, Fit = (
        (AtomicClassifierCV, AtomicClassifier) if classes else (AtomicRegressorCV, AtomicRegressor)
    )
    train, rest = np.arange(40), np.arange(40, 60)
    alphas = [0.3, 0.1, 0.03, 0.01]
    held_out = Search(alphas=alphas, cv=[(train, rest)], refit=False, tol=1e-9).fit(X, y)
    alone = Fit(alpha=held_out.alpha_, tol=1e-9).fit(X[train], y[train])
    assert_allclose(held_out.coef_, alone.coef_, atol=1e-6)
    assert_allclose(held_out.intercept_, alone.intercept_, atol=1e-6)
    whole = Search(alphas=alphas, cv=[(train, rest)], tol=1e-9).fit(X, y)
    assert whole.alpha_ == held_out.alpha_
    assert np.abs(whole.coef_ - held_out.coef_).max() > 1e-3


def test_without_a_refit_there_is_one_training_part() -> None:
    X, y = np.eye(10), np.arange(10.0)
    with pytest.raises(ValueError, match="one training part, but cv gives 3"):
        AtomicRegressorCV(cv=3, refit=False).fit(X, y)
