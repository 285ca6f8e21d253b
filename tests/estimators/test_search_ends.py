"""``until`` of the estimators that search: the ends of ``paths.path``, by the same names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atomlearn import AtomicClassifierCV, AtomicRegressorCV, AtomicSurvivalCV, paths
from atomlearn.losses import survival_target

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 200))
SIGNAL = X[:, :4].sum(axis=1)
TARGETS: dict[Any, Any] = {
    AtomicRegressorCV: SIGNAL + RNG.standard_normal(120),
    AtomicClassifierCV: np.digitize(SIGNAL, [-1.0, 1.0]),
    AtomicSurvivalCV: survival_target(RNG.random(120) < 0.8, RNG.exponential(np.exp(-SIGNAL))),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_no_improvement_chooses_as_the_whole_grid(kind: Any) -> None:
    y = TARGETS[kind]
    how: dict[str, Any] = {"n_alphas": 25, "alpha_ratio": 0.01, "cv": 3, "tol": 1e-5}
    whole = kind(**how).fit(X, y)
    cut = kind(**how, until=paths.NoImprovement(patience=4)).fit(X, y)
    known = np.isfinite(cut.cv_results_["mean_test_score"])
    assert 5 <= known.sum() < 25
    assert known[: known.sum()].all()
    assert cut.alpha_ == whole.alpha_
    scores = "mean_test_score"
    np.testing.assert_allclose(
        cut.cv_results_[scores][known], whole.cv_results_[scores][known], rtol=1e-4
    )


def test_features_and_deviance_end_a_search() -> None:
    y = TARGETS[AtomicRegressorCV]
    for until in (paths.NumberOfFeatures(6), paths.ExplainedDeviance(0.5)):
        model = AtomicRegressorCV(n_alphas=25, cv=3, until=until).fit(X, y)
        known = np.isfinite(model.cv_results_["mean_test_score"])
        assert 2 <= known.sum() < 25
        counts = model.cv_results_["mean_n_selected"][known]
        assert (counts[:-1] < 6).all() or not isinstance(until, paths.NumberOfFeatures)
