"""What the search of FeatureGenerator shares, and fits that repeat its choices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atomlearn import (
    AtomicClassifierCV,
    AtomicRegressorCV,
    AtomicSurvivalCV,
    FeatureGenerator,
)
from atomlearn.core import Settings, hessian
from atomlearn.core.masters.model_newton import levelled
from atomlearn.designs import as_design
from atomlearn.estimators import feature_generator
from atomlearn.findings.held_out import at_choices
from atomlearn.losses import survival_target


def table(n: int = 90, p: int = 30) -> tuple[Any, Any]:
    """Return X and a target that two columns explain."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, X[:, 0] - X[:, 1] + rng.standard_normal(n)


def test_each_fold_selects_once_at_each_c(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table()
    own = feature_generator.generated
    runs = list[tuple[float, float]]()

    def counted(problem: Any, *given: Any) -> Any:
        if problem.y.size < y.size:  # a fold
            runs.append((problem.y.sum(), float(problem.weight[0])))
        return own(problem, *given)

    monkeypatch.setattr(feature_generator, "generated", counted)
    model = FeatureGenerator(8, loss="squared", standardize=True, cv=3).fit(X, y)
    assert len(set(runs)) == len(runs)
    assert 3 < len(runs) <= 3 * 4
    assert len(model.size_choice_.values) > 1


def test_only_c_of_the_coefficients_is_searched_where_all_features_are_selected() -> None:
    X, y = table(p=6)
    model = FeatureGenerator(6, loss="squared", standardize=True, cv=3).fit(X, y)
    assert model.size_choice_.values == ((6, (10.0,)),)
    assert len(model.C_choice_.values) > 1
    assert model.selected_.size == 6


def test_of_equal_selections_the_one_of_the_largest_first_c_is_chosen() -> None:
    X, y = table()
    model = FeatureGenerator(12, standardize=True, cv=3).fit(X[:60], y[:60] > 0)
    means = [scores.mean() for scores in model.size_choice_.scores]
    best = np.flatnonzero(np.equal(means, max(means)))
    assert best.size > 1
    assert model.size_choice_.chosen == model.size_choice_.values[best[-1]]


def test_coefficients_do_not_depend_on_the_fits_before() -> None:
    X, y = table()
    model = FeatureGenerator(8, 4, loss="squared", standardize=True, selected_tol=1e-10)
    model.n_features_in_ = X.shape[1]
    weights = list[Any]()
    for strengths in ((3.0, 0.1, 1.0), (0.03, 0.3, 1.0)):
        selections = model.selections(as_design(X), y, None, None, Settings())
        _, found = selections.first((10.0,))
        for C in strengths:
            result = selections.fitted(10.0, C, found)
        weights.append((result.columns, result.weights))
    assert_array_equal(weights[0][0], weights[1][0])
    assert_allclose(weights[0][1], weights[1][1], atol=1e-5)


@pytest.mark.parametrize("values", [[0.1], [0.1, 1.0, 2.0], [0.0, 1.0], ["auto", 1.0]])
def test_other_than_a_pair_is_refused(values: list[Any]) -> None:
    X, y = table(20, 5)
    with pytest.raises((TypeError, ValueError), match="C must be"):
        FeatureGenerator(3, C=values, loss="squared").fit(X, y)


def test_a_pair_selects_with_its_first_value_raised_until_there_are_enough() -> None:
    X, y = table()
    model = FeatureGenerator(8, C=(0.001, 0.5), loss="squared", standardize=True).fit(X, y)
    assert model.n_selected_ == 8
    assert model.selected_at_ in {0.01, 0.1, 1.0, 10.0}
    assert model.C_ == 0.5
    named = FeatureGenerator(8, C=model.selected_at_, loss="squared", standardize=True).fit(X, y)
    assert_array_equal(model.selected_, named.selected_)


SEARCHES = {
    "generation": FeatureGenerator(4, loss="squared", standardize=True, cv=3),
    "number": FeatureGenerator("auto", loss="squared", standardize=True, cv=3),
    "l1": AtomicRegressorCV(n_alphas=5, cv=3, l1_ratio=[0.5, 1.0], relax=(0.0, 1.0)),
    "k": AtomicRegressorCV("ksupport", n_alphas=4, cv=3),
    "radius": AtomicRegressorCV(form="constrained", n_alphas=4, cv=3),
    "pipeline": make_pipeline(StandardScaler(), AtomicRegressorCV(n_alphas=5, cv=3)),
    "classes": AtomicClassifierCV(n_alphas=5, cv=3, class_weight="balanced"),
    "survival": AtomicSurvivalCV(n_alphas=5, cv=3),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_fit_at_the_choices_is_the_fit_of_the_search(kind: str) -> None:
    X, y = table(60, 10)
    target = {"classes": y > 0, "survival": survival_target(np.ones(60, bool), np.exp(y))}
    fitted = clone(SEARCHES[kind]).fit(X, target.get(kind, y))
    again = at_choices(fitted).fit(X, target.get(kind, y))
    (found, expected) = (getattr(m, "steps", [("", m)])[-1][1] for m in (again, fitted))
    assert_allclose(found.coef_, expected.coef_, atol=1e-5)
    assert not hasattr(found, "cv_results_")
    assert not getattr(found, "C_choice_", None)


def test_hessians_of_classes_use_the_structure_of_repeated_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over an orthonormal basis Q of the classes it is that over all classes, turned by Q."""
    from atomlearn.papers import feature_generation

    X, y = table(60, 12)
    problems = list[Any]()
    own = feature_generation.choose_master

    def seen(problem: Any) -> Any:
        problems.append(problem)
        return own(problem)

    monkeypatch.setattr(feature_generation, "choose_master", seen)
    FeatureGenerator(6, 2, C=1.0, standardize=True).fit(X, np.digitize(y, [-1, 1]))
    problem = max(problems, key=lambda one: one.design.shape[1])
    smaller, right = levelled(problem)
    assert smaller.design.traits.couples_by_structure
    prediction = np.random.default_rng(1).standard_normal(problem.y.size)
    whole = hessian(problem, problem.design, prediction)
    turn = np.kron(np.eye(whole.shape[0] // 3), right)
    assert_allclose(hessian(smaller, smaller.design, prediction), turn.T @ whole @ turn, atol=1e-9)
