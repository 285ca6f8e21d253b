"""l1_ratio: the share of the norm in the penalty, the rest of it the squares of w."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    LogisticRegression,
    MultiTaskElasticNet,
)

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    AtomicSurvival,
    AtomicSurvivalCV,
    norms,
)
from atomlearn.core import loss_value
from atomlearn.losses import survival_target
from atomlearn.problem import Problem

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 12))
Y = X[:, :3].sum(axis=1) + 0.3 * RNG.standard_normal(60)
ALPHA = 0.2
SETS = [[0, 1, 2], [2, 3, 4], [4, 5, 6], [7, 8], [9, 10, 11]]
NORMS = [
    "l1",
    "l2",
    "linf",
    norms.KSupport(3),
    norms.ElasticNetNorm(3),
    norms.OWL(np.linspace(1.0, 0.5, 12)),
    norms.Groups([[0, 1, 2], [3, 4], [5, 6, 7], [8, 9, 10, 11]]),
    norms.LatentGroups(SETS),
    norms.Chains(3),
    norms.TraceNorm((3, 4)),
]


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.01, 0.0])
def test_regression_is_that_of_scikit_learn(l1_ratio: float) -> None:
    theirs = ElasticNet(alpha=ALPHA, l1_ratio=l1_ratio, tol=1e-12, max_iter=100_000).fit(X, Y)
    ours = AtomicRegressor(alpha=ALPHA, l1_ratio=l1_ratio, tol=1e-11).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-7)
    in_parts = AtomicRegressor(alpha=ALPHA, l1_ratio=l1_ratio, tol=1e-11)
    in_parts.partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    np.testing.assert_allclose(in_parts.coef_, theirs.coef_, atol=1e-7)


@pytest.mark.parametrize("l1_ratio", [0.5, 0.0])
def test_several_targets_are_those_of_scikit_learn(l1_ratio: float) -> None:
    targets = np.column_stack([Y, Y - X[:, 4]])
    theirs = MultiTaskElasticNet(ALPHA, l1_ratio=l1_ratio, tol=1e-12, max_iter=100_000)
    theirs.fit(X, targets)
    ours = AtomicRegressor("rows", ALPHA, l1_ratio=l1_ratio, tol=1e-12).fit(X, targets)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)


@pytest.mark.parametrize("l1_ratio", [0.5, 0.0])
@pytest.mark.parametrize("class_weight", [None, "balanced", {False: 1.0, True: 7.0}])
def test_classes_are_those_of_scikit_learn(l1_ratio: float, class_weight: Any) -> None:
    """The loss is the weighted mean, so that C is 1 / (alpha * the sum of the weights)."""
    labels = Y > 1.0
    weight = np.ones(60)
    if isinstance(class_weight, dict):
        weight[labels] = 7.0
    theirs = LogisticRegression(
        C=1.0 / (0.02 * weight.sum()),
        l1_ratio=l1_ratio,
        class_weight=class_weight,
        solver="saga",
        tol=1e-10,
        max_iter=100_000,
    ).fit(X, labels)
    ours = AtomicClassifier(alpha=0.02, l1_ratio=l1_ratio, class_weight=class_weight, tol=1e-10)
    np.testing.assert_allclose(ours.fit(X, labels).coef_, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson", "quantile"])
@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_the_objective_of_every_norm_holds_both_terms(norm: Any, loss: str) -> None:
    """The gap is proved of alpha (l1_ratio R(w) + (1 - l1_ratio) / 2 ||w||^2) and the mean loss."""
    target = np.round(np.exp(Y)) if loss == "poisson" else Y
    model = AtomicRegressor(norm, ALPHA, l1_ratio=0.3, loss=loss, tol=1e-4).fit(X, target)
    assert model.status_.is_converged
    data = model._checked(X, target, None)
    [plain] = model._problems(data, norm, ALPHA, 1.0)
    assert isinstance(plain, Problem)
    gauge = plain.regularizer.norm.value(model.coef_)
    squares = 0.5 * float(model.coef_ @ model.coef_)
    smooth = loss_value(plain, X @ model.coef_ + model.intercept_)
    objective = smooth + ALPHA * (0.3 * gauge + 0.7 * squares)
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-3)
    assert model.gap_ <= 1e-4 * model.objective_


def test_hazards_have_both_terms() -> None:
    target = survival_target(RNG.random(60) < 0.8, RNG.exponential(np.exp(-X[:, 3])))
    weak, strong = (
        AtomicSurvival(alpha=0.1, l1_ratio=ratio).fit(X, target) for ratio in (0.9, 0.1)
    )
    assert weak.status_.is_converged
    assert strong.status_.is_converged
    assert np.count_nonzero(weak.coef_) < np.count_nonzero(strong.coef_)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "half", None])
def test_l1_ratio_is_a_share(wrong: Any) -> None:
    with pytest.raises(ValueError, match="l1_ratio must be a number from 0 to 1"):
        AtomicRegressor(l1_ratio=wrong).fit(X, Y)


def test_a_bound_on_the_norm_has_no_share() -> None:
    with pytest.raises(ValueError, match="form='constrained' needs l1_ratio=1"):
        AtomicRegressor(form="constrained", l1_ratio=0.5).fit(X, Y)


def test_cross_validation_is_that_of_scikit_learn() -> None:
    """alpha and l1_ratio are chosen together; the refit is at both."""
    ratios = [0.2, 0.5, 0.9]
    alphas = np.geomspace(1.0, 0.01, 8)
    theirs = ElasticNetCV(l1_ratio=ratios, alphas=alphas, cv=4, tol=1e-10, max_iter=100_000)
    theirs.fit(X, Y)
    ours = AtomicRegressorCV(alphas=alphas, l1_ratio=ratios, cv=4, tol=1e-10).fit(X, Y)
    assert ours.l1_ratio_ == theirs.l1_ratio_
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert ours.alphas_.shape == (3, 8)
    scores = ours.cv_results_["mean_test_score"].reshape(3, 8)
    np.testing.assert_allclose(-2.0 * scores, theirs.mse_path_.mean(axis=2), rtol=1e-6)
    assert ours.cv_results_["param_l1_ratio"].tolist() == np.repeat(ratios, 8).tolist()
    assert ours.cv_results_["params"][-1]["l1_ratio"] == 0.9
    default = AtomicRegressorCV(l1_ratio=0.5, n_alphas=8, alpha_ratio=1e-3, cv=4).fit(X, Y)
    grid = ElasticNetCV(l1_ratio=0.5, alphas=8, eps=1e-3, cv=4).fit(X, Y).alphas_
    np.testing.assert_allclose(default.alphas_, grid)


@pytest.mark.parametrize("norm", NORMS[2:], ids=str)
def test_searches_take_every_norm(norm: Any) -> None:
    model = AtomicRegressorCV(norm, n_alphas=3, l1_ratio=(0.5, 1.0), cv=3, tol=1e-4).fit(X, Y)
    fitted = AtomicRegressor(
        norm, model.alpha_, l1_ratio=model.l1_ratio_, tol=1e-4, form=form_of(norm)
    )
    np.testing.assert_allclose(fitted.fit(X, Y).objective_, model.objective_, rtol=1e-3)


def form_of(norm: Any) -> Any:
    return "penalized" if isinstance(norm, str) else norm.usual_form


def test_an_open_norm_is_searched_with_each_l1_ratio() -> None:
    model = AtomicRegressorCV("ksupport", n_alphas=6, l1_ratio=[0.3, 1.0], cv=3).fit(X, Y)
    assert model.norm_.k >= 1
    assert model.l1_ratio_ in (0.3, 1.0)


def test_classes_and_hazards_are_searched() -> None:
    labels = AtomicClassifierCV(n_alphas=4, l1_ratio=[0.3, 0.9], cv=3).fit(X, Y > 0)
    assert labels.l1_ratio_ in (0.3, 0.9)
    target = survival_target(RNG.random(60) < 0.8, RNG.exponential(np.exp(-X[:, 3])))
    hazards = AtomicSurvivalCV(n_alphas=4, l1_ratio=0.5, cv=3).fit(X, target)
    assert hazards.l1_ratio_ == 0.5
    _, lower, upper = AtomicRegressorCV(n_alphas=4, l1_ratio=0.4).fit(X, Y).predict(X, interval=0.8)
    assert np.mean((lower <= Y) & (upper >= Y)) > 0.7


def test_a_search_needs_the_norm() -> None:
    with pytest.raises(ValueError, match="l1_ratio of a search must be above 0"):
        AtomicRegressorCV(l1_ratio=[0.0, 0.5]).fit(X, Y)
