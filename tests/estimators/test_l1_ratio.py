"""l1_ratio: the share of the norm in the penalty, the rest of it the squares of w."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, LogisticRegression, MultiTaskElasticNet

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicSurvival, norms
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
    loss_value = plain.loss_value(X @ model.coef_ + model.intercept_)
    objective = loss_value + ALPHA * (0.3 * gauge + 0.7 * squares)
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
