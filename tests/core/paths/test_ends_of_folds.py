"""Cross-validations that choose their own end: all folds of a norm end at one level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

from atomlearn import norms, paths, solvers
from atomlearn.core import Counted, Settings, changed, held_out_loss
from atomlearn.designs import as_design
from atomlearn.losses import as_loss
from atomlearn.problem import Problem, Regularizer


def search(
    until: Any, settings: Any = None, loss: str = "squared", n_outputs: int = 1
) -> tuple[Any, Any]:
    """The scores of a whole grid, and of one with an end."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1000))
    found = []
    targets = [X[:, k : k + 4] @ np.ones(4) + rng.standard_normal(60) for k in range(n_outputs)]
    if loss == "logistic":
        targets = [np.where(y > 0, 1.0, -1.0) for y in targets]
    problems = [
        Problem.build(
            Counted(as_design(X)), y, as_loss(loss), Regularizer(norms.L1(), "penalized", 1.0)
        )
        for y in targets
    ]
    candidates = [norms.L1(), norms.KSupport(3)]
    levels = np.array(
        [
            paths.alpha_grid(paths.largest_useful_alpha(changed(problems[0], norm=norm)), 25, 0.02)
            for norm in candidates
        ]
    )
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    score = held_out_loss(problems)
    for end in (None, until):
        found.append(
            paths.cross_validate(
                problems, candidates, levels, folds, score, settings or Settings(), until=end
            )
        )
    return found[0], found[1]


@pytest.mark.parametrize(("loss", "n_outputs"), [("squared", 2), ("logistic", 1)])
def test_no_improvement_of_the_mean_score_ends_all_folds(loss: str, n_outputs: int) -> None:
    whole, found = search(paths.NoImprovement(patience=3), loss=loss, n_outputs=n_outputs)
    for norm in range(2):
        mean = whole.mean[norm]
        best = np.maximum.accumulate(mean)
        since = np.array([k - int(np.argmax(mean[: k + 1])) for k in range(mean.size)])
        last = int(np.flatnonzero(since >= 3)[0])
        assert best[last] == mean.max()
        solved = np.isfinite(found.scores[norm])
        assert (solved == (np.arange(25) <= last)[:, None]).all()
        np.testing.assert_allclose(
            found.scores[norm, : last + 1], whole.scores[norm, : last + 1], rtol=1e-4
        )
    assert found.choose() == whole.choose()
    assert found.passes <= whole.passes
    norm, level = found.choose()
    starts = found.warm_starts(norm, level)
    assert all(start is not None and start.columns.size for start in starts)
    assert np.isnan(found.table()["mean_test_score"]).any()


def test_ends_of_each_path_wait_for_the_last_fold() -> None:
    whole, found = search(paths.NumberOfFeatures(15))
    for norm in range(2):
        enough = whole.n_selected[norm] >= 15
        last = max(int(np.flatnonzero(fold)[0]) for fold in enough.T)
        assert (np.isfinite(found.scores[norm]) == (np.arange(25) <= last)[:, None]).all()


def test_folds_that_share_no_readings_end_together_too() -> None:
    alone = Settings(solver=solvers.ColumnGeneration(batch=5))
    whole, found = search(paths.NumberOfFeatures(15) | paths.NoImprovement(patience=20), alone)
    for norm in range(2):
        enough = whole.n_selected[norm] >= 15
        last = max(int(np.flatnonzero(fold)[0]) for fold in enough.T)
        assert (np.isfinite(found.scores[norm]) == (np.arange(25) <= last)[:, None]).all()
    assert np.isfinite(found.mean[found.choose()])


def test_a_single_path_has_no_rows_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"NoImprovement\(X, y\)"):
        paths.path(np.eye(3), np.ones(3), until=paths.NoImprovement(), fit_intercept=False)
