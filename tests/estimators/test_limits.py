"""observers, stop and time_limit: the estimators' ways to be watched, and to be ended early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from atomlearn import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    FeatureGenerator,
)
from atomlearn.core import Settings
from atomlearn.interfaces import Deadline
from atomlearn.result import Status
from atomlearn.solvers import stopping

#: Too many entries to be solved before the first pass.
X, Y = make_classification(1200, 30, n_informative=8, n_classes=3, random_state=0)
BINARY = (Y > 0).astype(float)
KINDS: list[Any] = [
    (AtomicRegressor(alpha=0.01), BINARY),
    (AtomicClassifier(alpha=0.01), Y),
    (AtomicRegressorCV(alphas=[0.01, 0.001], cv=2), BINARY),
    (AtomicClassifierCV(alphas=[0.01, 0.001], cv=2), BINARY),
    (FeatureGenerator(5, 1, standardize=True), BINARY),
]
each_kind = pytest.mark.parametrize(
    ("estimator", "y"), KINDS, ids=[type(kind).__name__ for kind, _ in KINDS]
)


@each_kind
def test_observers_see_every_step_and_change_nothing(estimator: Any, y: Any) -> None:
    seen: list[float] = []
    watched = clone(estimator).set_params(observers=[lambda progress: seen.append(progress.passes)])
    watched.fit(X, y)
    assert len(seen) >= sum(len(result.history) for result in watched.results_)
    np.testing.assert_array_equal(watched.coef_, clone(estimator).fit(X, y).coef_)
    assert clone(watched).observers is not None


@each_kind
def test_a_further_rule_ends_the_fit(estimator: Any, y: Any) -> None:
    stopped = clone(estimator).set_params(
        stop=stopping.Passes(1), tol=1e-16
    )  # no gap of it is proved
    with pytest.warns(ConvergenceWarning, match="limit of passes"):
        stopped.fit(X, y)
    assert stopped.status_ is Status.PASS_LIMIT


@each_kind
def test_a_time_limit_ends_the_fit_with_what_it_has(estimator: Any, y: Any) -> None:
    limited = clone(estimator).set_params(time_limit=1e-6, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        limited.fit(X, y)
    assert limited.status_ is Status.TIME_LIMIT
    assert np.isfinite(limited.gap_)
    assert limited.predict(X).shape == y.shape
    assert clone(estimator).set_params(time_limit=600).fit(X, y).status_ is not Status.TIME_LIMIT


def test_limits_of_the_wrong_kind_are_refused() -> None:
    for estimator, y in KINDS:
        with pytest.raises(TypeError, match="stop must be a StoppingRule"):
            clone(estimator).set_params(stop=3.0).fit(X, y)
        with pytest.raises(ValueError, match="time_limit must be positive"):
            clone(estimator).set_params(time_limit=0).fit(X, y)


def test_a_search_has_its_share_of_the_time() -> None:
    whole = Settings(deadline=Deadline.after(600.0))
    assert 100.0 < whole.within(0.25).deadline.left <= 150.0
    assert Settings().within(0.25) == Settings()


def test_every_class_has_time_where_the_first_alone_would_take_it_all() -> None:
    """With a tolerance that cannot be reached, each class still leaves its starting point."""
    model = AtomicClassifier(alpha=1e-4, tol=1e-15, max_iter=10**6, time_limit=3.0)
    model.set_params(solver="fista")
    with pytest.warns(ConvergenceWarning):
        model.fit(X, Y)
    assert all(len(result.history) > 1 for result in model.results_)
    assert all(result.weights.size for result in model.results_)
