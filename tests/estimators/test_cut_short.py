"""Ctrl-C in a search: the scores known until then are those of the search that ran to its end."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from atomlearn import AtomicRegressorCV, norms, solvers
from atomlearn.core import known_folds
from atomlearn.core.paths.shared_levels import SharedLevels
from atomlearn.core.solvers import schedule
from atomlearn.core.solvers.run import SteppedLevels
from atomlearn.result import Status

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 30))
Y = X[:, :3].sum(axis=1) + RNG.standard_normal(80)
#: A norm whose levels are not all solved at once.
PAIRS = norms.Groups(np.arange(30) // 2)


def cut(model: AtomicRegressorCV, status: Status = Status.INTERRUPTED) -> AtomicRegressorCV:
    """Fit a model whose search is cut short: it is a model, and says so."""
    by = {Status.INTERRUPTED: "Ctrl-C", Status.TIME_LIMIT: "the time limit"}[status]
    with pytest.warns(ConvergenceWarning, match=f"cut short by {by}"):
        model.fit(X, Y)
    assert model.status_ is status
    assert model.predict(X).shape == Y.shape
    known = np.isfinite(model.cv_results_["mean_test_score"])
    best = int(np.nanargmax(model.cv_results_["mean_test_score"]))
    assert model.cv_results_["params"][best]["alpha"] == model.alpha_
    assert 0 < known.sum() < known.size
    return model


@pytest.mark.parametrize("levels", [0, 3])
def test_folds_that_take_their_own_steps(levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver of its own: all folds are about as far, and what they solved is kept."""
    given: dict[str, Any] = {"n_alphas": 6, "solver": solvers.FISTA(), "tol": 1e-3}
    whole = AtomicRegressorCV(norms.L1(), **given).fit(X, Y)
    advance = SteppedLevels.advance

    def interrupted(self: SteppedLevels) -> None:
        if len(self.results) >= levels:
            raise KeyboardInterrupt
        advance(self)

    monkeypatch.setattr(SteppedLevels, "advance", interrupted)
    model = AtomicRegressorCV(norms.L1(), **given)
    if levels == 0:
        with pytest.raises(KeyboardInterrupt, match="scored anything"):
            model.fit(X, Y)
        assert not hasattr(model, "coef_")
        return
    final = AtomicRegressorCV._solve
    monkeypatch.setattr(
        AtomicRegressorCV,
        "_solve",
        lambda *given: (monkeypatch.setattr(SteppedLevels, "advance", advance), final(*given))[1],
    )
    found = cut(model).cv_results_["mean_test_score"]
    known = np.isfinite(found)
    assert 1 <= known.sum() <= levels
    np.testing.assert_allclose(found[known], whole.cv_results_["mean_test_score"][known], rtol=1e-5)


def test_folds_that_share_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = AtomicRegressorCV(PAIRS, n_alphas=40).fit(X, Y)
    learn, calls = SharedLevels.learn, []

    def interrupted(self: Any, *arguments: Any) -> None:
        learn(self, *arguments)
        calls.append(0)
        if len(calls) == 13:  # five folds a round, the first of which fills the pool
            raise KeyboardInterrupt

    monkeypatch.setattr(SharedLevels, "learn", interrupted)
    found = cut(AtomicRegressorCV(PAIRS, n_alphas=40)).cv_results_["mean_test_score"]
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known], whole.cv_results_["mean_test_score"][known])


@pytest.mark.parametrize("norm", ["l1", PAIRS], ids=["swept", "level by level"])
@pytest.mark.parametrize("number", [1, 7, 9])
def test_points_without_a_proof_get_it_where_they_are_all_there_is(
    norm: Any, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real Ctrl-C before the first reading that proves: five folds fill the pool, then solve."""
    whole = AtomicRegressorCV(norm, n_alphas=40).fit(X, Y)
    advance, calls = SharedLevels.advance, []

    def interrupted(self: Any) -> Any:
        calls.append(0)
        if len(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return advance(self)

    monkeypatch.setattr(SharedLevels, "advance", interrupted)
    model = AtomicRegressorCV(norm, n_alphas=40)
    if number == 1:
        with pytest.raises(KeyboardInterrupt, match="scored anything"):
            model.fit(X, Y)
        return
    with pytest.warns(ConvergenceWarning, match="cut short by Ctrl-C"):
        found = model.fit(X, Y).cv_results_
    assert model.status_ is Status.INTERRUPTED
    # One fold, or three, have a score: each is that of the whole search.
    for fold in range(number - 6):
        scores, of_all = (kept[f"split{fold}_test_score"] for kept in (found, whole.cv_results_))
        known = np.isfinite(scores)
        assert known[0]
        np.testing.assert_allclose(scores[known], of_all[known], rtol=1e-4)


@pytest.mark.parametrize("after", [1, 2])
def test_a_time_limit_keeps_the_levels_that_were_solved(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levels that were only begun are no candidates; one that none of the folds solved is."""
    from atomlearn._support import Deadline

    whole = AtomicRegressorCV(PAIRS, n_alphas=40).fit(X, Y)
    calls, read = [], schedule._read

    def counted(*arguments: Any) -> Any:
        calls.append(0)
        return read(*arguments)

    monkeypatch.setattr(schedule, "_read", counted)
    # The final fit has its own half of the time.
    final = AtomicRegressorCV._solve
    monkeypatch.setattr(
        AtomicRegressorCV, "_solve", lambda *given: (calls.clear(), final(*given))[1]
    )
    monkeypatch.setattr(Deadline, "passed", property(lambda self: len(calls) >= after))
    model = cut(AtomicRegressorCV(PAIRS, n_alphas=40), Status.TIME_LIMIT)
    found = model.cv_results_["mean_test_score"]
    known = np.isfinite(found)
    assert known.sum() == np.flatnonzero(known)[-1] + 1
    if after == 2:
        np.testing.assert_allclose(
            found[known], whole.cv_results_["mean_test_score"][known], rtol=1e-5
        )


def test_whole_folds_before_those_that_have_begun() -> None:
    scores = np.zeros((1, 3, 4))
    scores[0, 2, 1] = scores[0, :, 3] = np.nan
    assert known_folds(scores).tolist() == [0, 2]
    scores[0, 2] = np.nan
    assert known_folds(scores).tolist() == [0, 1, 2]
