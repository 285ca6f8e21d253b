"""Ctrl-C in a search: the scores known until then are those of the search that ran to its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from atomlearn import AtomicRegressorCV, norms, solvers
from atomlearn.core.paths import cross_validation
from atomlearn.core.paths.cut_short import known_folds
from atomlearn.result import Status

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 30))
Y = X[:, :3].sum(axis=1) + RNG.standard_normal(80)


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


@pytest.mark.parametrize("last", [0, 1, 7])
def test_folds_solved_one_by_one(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver of its own: folds are whole, or not there."""
    given: dict[str, Any] = {"n_alphas": 6, "solver": solvers.FISTA(), "tol": 1e-3}
    candidates = [norms.L1(), norms.L2()]
    whole = AtomicRegressorCV(candidates, **given).fit(X, Y)
    each, calls = cross_validation.path_of, []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        calls.append(0)
        if len(calls) == last + 1:
            raise KeyboardInterrupt
        return each(*arguments, **named)

    monkeypatch.setattr(cross_validation, "path_of", interrupted)
    model = AtomicRegressorCV(candidates, **given)
    if last == 0:
        with pytest.raises(KeyboardInterrupt, match="scored anything"):
            model.fit(X, Y)
        assert not hasattr(model, "coef_")
        return
    if last == 7:  # both norms are known on two folds
        with pytest.warns(ConvergenceWarning, match="12 of 12 candidates"):
            model.fit(X, Y)
        assert model.status_ is Status.INTERRUPTED
    else:  # the first norm on one
        cut(model)
    assert len(calls) == last + 1  # no further fold was begun
    table, found = whole.cv_results_, model.cv_results_
    assert f"split{1 if last == 1 else 2}_test_score" not in found
    for fold in range(1 if last == 1 else 2):
        name, known = f"split{fold}_test_score", 6 if last == 1 else 12
        np.testing.assert_allclose(found[name][:known], table[name][:known])


def test_folds_that_share_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    from atomlearn.core.paths import speculation

    whole = AtomicRegressorCV(norms.KSupport(3), n_alphas=40).fit(X, Y)
    learn, calls = speculation.Speculation.learn, []

    def interrupted(self: Any, *arguments: Any) -> None:
        learn(self, *arguments)
        calls.append(0)
        if len(calls) == 8:  # five folds a round: in the second
            raise KeyboardInterrupt

    monkeypatch.setattr(speculation.Speculation, "learn", interrupted)
    found = cut(AtomicRegressorCV(norms.KSupport(3), n_alphas=40)).cv_results_["mean_test_score"]
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known], whole.cv_results_["mean_test_score"][known])


@pytest.mark.parametrize("after", [1, 2])
def test_a_time_limit_keeps_the_levels_that_were_solved(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levels that were only begun are no candidates; one that none of the folds solved is."""
    from atomlearn.core.interfaces import Deadline
    from atomlearn.core.paths import readings

    whole = AtomicRegressorCV(norms.KSupport(3), n_alphas=40).fit(X, Y)
    calls, read = [], readings._read

    def counted(*arguments: Any) -> Any:
        calls.append(0)
        return read(*arguments)

    monkeypatch.setattr(readings, "_read", counted)
    # The final fit has its own half of the time.
    final = AtomicRegressorCV._final
    monkeypatch.setattr(
        AtomicRegressorCV, "_final", lambda *given: (calls.clear(), final(*given))[1]
    )
    monkeypatch.setattr(Deadline, "passed", property(lambda self: len(calls) >= after))
    model = cut(AtomicRegressorCV(norms.KSupport(3), n_alphas=40), Status.TIME_LIMIT)
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
