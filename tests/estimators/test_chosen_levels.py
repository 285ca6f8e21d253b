"""AtomicSurvivalCV against the same by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from atomlearn import (
    AtomicSurvival,
    AtomicSurvivalCV,
    norms,
)
from atomlearn.core import mean_loss
from atomlearn.losses import Cox, survival_target


def times(n: int = 120, p: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    time = rng.exponential(np.exp(-X[:, 3] + X[:, 5]))
    return X, survival_target(rng.random(n) < 0.7, time)


def test_held_out_scores_of_hazards_are_partial_likelihoods_of_the_fold() -> None:
    X, y = times()
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = AtomicSurvivalCV(alphas=[0.3, 0.1, 0.03], cv=folds, tol=1e-9).fit(X, y)
    for number, (train, test) in enumerate(folds):
        for alpha, score in zip(
            model.alphas_, model.cv_results_[f"split{number}_test_score"], strict=True
        ):
            fold = AtomicSurvival(alpha=alpha, tol=1e-9).fit(X[train], y[train])
            ones = np.ones(test.size)
            expected = -mean_loss(Cox(), y[test], fold.decision_function(X[test]), ones)
            assert_allclose(score, expected, rtol=1e-5)
    alone = AtomicSurvival(alpha=model.alpha_, tol=1e-9).fit(X, y)
    assert_allclose(model.coef_, alone.coef_, atol=1e-6)
    assert model.score(X, y) == pytest.approx(alone.score(X, y))
    curves = [m.predict_survival_function(X[:4], return_array=True) for m in (model, alone)]
    assert_allclose(curves[0], curves[1], atol=1e-6)
    assert model.transform(X).shape == (120, model.selected_.size)


def test_searches_of_hazards_take_fields_offsets_norms_and_scorers() -> None:
    X, y = times()
    named = np.array(list(zip(y["event"], y["time"], strict=True)), dtype="?,f8")
    plain = AtomicSurvivalCV(n_alphas=6, cv=3).fit(X, y)
    assert_allclose(AtomicSurvivalCV(n_alphas=6, cv=3).fit(X, named).coef_, plain.coef_)
    both = clone(plain).set_params(norms=["l1", norms.KSupport(2)]).fit(X, y, offset=-X[:, 5])
    assert abs(both.coef_[3]) > abs(both.coef_[5])
    scored = clone(plain).set_params(scoring=lambda model, X, y: -model.predict(X).max())
    assert scored.fit(X, y).alpha_ == scored.alphas_[0]
    with pytest.raises(ValueError, match="no event"):
        plain.fit(X, survival_target(np.zeros(120, bool), y["time"]))


def test_hazards_are_scored_by_name_over_folds_with_equal_shares_of_events() -> None:
    X, y = times()
    model = AtomicSurvivalCV(n_alphas=5, cv=4, scoring="concordance", tol=1e-9).fit(X, y)
    rows = np.arange(120)[:, None]
    folds = list(StratifiedKFold(4).split(rows, y["event"]))
    for number, (train, test) in enumerate(folds):
        for alpha, score in zip(
            model.alphas_, model.cv_results_[f"split{number}_test_score"], strict=True
        ):
            fold = AtomicSurvival(alpha=alpha, tol=1e-9).fit(X[train], y[train])
            assert score == pytest.approx(fold.score(X[test], y[test]), abs=2e-3)
    shuffled = StratifiedKFold(4, shuffle=True, random_state=0)
    assert AtomicSurvivalCV(n_alphas=3, cv=shuffled).fit(X, y).status_.is_converged
    # Of three that are censored there is none for each of five folds.
    few = survival_target(np.arange(120) > 2, y["time"])
    assert AtomicSurvivalCV(n_alphas=3).fit(X, few).status_.is_converged
    with pytest.raises(ValueError, match="concord"):
        AtomicSurvivalCV(n_alphas=3, scoring="concord").fit(X, y)
