"""Ctrl-C in a search: the scores known until then are those of the search that ran to its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atomlearn import AtomicRegressorCV, norms, solvers
from atomlearn.core.paths import cross_validation
from atomlearn.core.paths.cut_short import SearchInterrupted, known_folds

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 30))
Y = X[:, :3].sum(axis=1) + RNG.standard_normal(80)


def cut(model: AtomicRegressorCV) -> Any:
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X, Y)
    assert isinstance(caught.value, SearchInterrupted)
    return caught.value.found


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
    found = cut(AtomicRegressorCV(candidates, **given))
    assert len(calls) == last + 1  # no further fold was begun
    if last == 0:
        assert found is None
        return
    # 7: both norms are known on two folds; 1: the first norm on one.
    folds = 2 if last == 7 else 1
    assert found.scores.shape == (2, 6, folds)
    table = whole.cv_results_
    for fold in range(folds):
        known = found.scores[: 2 if last == 7 else 1, :, fold].ravel()
        np.testing.assert_allclose(known, table[f"split{fold}_test_score"][: known.size])
    norm, level = found.choose()
    assert np.isfinite(found.mean[norm, level])


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
    found = cut(AtomicRegressorCV(norms.KSupport(3), n_alphas=40))
    known = np.isfinite(found.mean[0])
    assert found.scores.shape == (1, 40, 5)
    assert 0 < known.sum() < 40
    np.testing.assert_allclose(found.mean[0, known], whole.cv_results_["mean_test_score"][known])


def test_whole_folds_before_those_that_have_begun() -> None:
    scores = np.zeros((1, 3, 4))
    scores[0, 2, 1] = scores[0, :, 3] = np.nan
    assert known_folds(scores).tolist() == [0, 2]
    scores[0, 2] = np.nan
    assert known_folds(scores).tolist() == [0, 1, 2]
