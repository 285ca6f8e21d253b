"""scikit-learn's callbacks see each step, score the model there, and may stop the fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, FeatureGenerator

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 600))
y = X[:, :10] @ rng.standard_normal(10) + 0.3 * rng.standard_normal(80)


class Log:
    """Keeps what it is told; asks to stop after so many steps."""

    def __init__(self, most: int = 10**9) -> None:
        self.steps: list[float] = []
        self.ends: list[float] = []
        self.calls: list[str] = []
        self.most = most

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"{context.task_name} begins")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        where = self.steps if context.task_name == "step" else self.ends
        where.append(np.nan if fitted_estimator is None else fitted_estimator.score(X, y))
        return len(self.steps) >= self.most


def test_every_step_is_told_and_the_last_is_the_model():
    log = Log()
    model = AtomicRegressor(alpha=0.05).set_callbacks(log).fit(X, y)
    assert log.calls[:2] == ["setup", "fit begins"]
    assert log.calls[-1] == "teardown"
    assert len(log.steps) == len(model.history_)
    assert log.steps[-1] == pytest.approx(model.score(X, y), abs=1e-12)
    assert log.ends == [pytest.approx(model.score(X, y), abs=1e-12)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_stops_the_fit():
    model = AtomicRegressor(alpha=0.05).set_callbacks(Log(2)).fit(X, y)
    assert len(model.history_) == 2
    assert model.status_.name == "STOPPED_BY_CALLBACK"


def test_a_fit_that_fails_is_torn_down():
    log = Log()
    with pytest.raises(ValueError, match="alpha"):
        AtomicRegressor(alpha=-1.0).set_callbacks(log).fit(X, y)
    assert log.calls[-1] == "teardown"


def test_scores_of_two_classes_are_kept():
    monitor = callback.ScoringMonitor(scoring="accuracy")
    labels = np.where(y > 0, "up", "down")
    model = AtomicClassifier(alpha=0.05).set_callbacks(monitor).fit(X, labels)
    told = [row["accuracy"] for row in monitor.get_logs().data if row["task_name"] == "step"]
    assert len(told) == len(model.history_)
    assert told[-1] == model.score(X, labels)


@pytest.mark.parametrize(
    "model", [AtomicRegressorCV(n_alphas=3, cv=3), FeatureGenerator(3, loss="squared")]
)
def test_others_tell_too(model):
    log = Log()
    model.set_callbacks(log).fit(X, y)
    assert log.steps
    assert log.ends == [pytest.approx(model.score(X, y), abs=1e-12)]


def test_searches_pass_callbacks_on(capsys):
    search = GridSearchCV(AtomicRegressor(), {"alpha": [0.2, 0.1]}, cv=3)
    if not hasattr(search, "set_callbacks"):
        pytest.skip("this scikit-learn does not tell callbacks of searches")
    pytest.importorskip("rich", reason="the bar is drawn by it")
    search.set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "AtomicRegressor" in capsys.readouterr().out
