"""Paths that are killed and go on: the same points, each proved again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

from atomlearn import norms, paths
from atomlearn.core import DenseDesign, Settings, held_out_loss
from atomlearn.losses import as_loss
from atomlearn.problem import Problem, Regularizer


def data(loss: str = "squared") -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4000)) + 1.0
    y = X[:, :10] @ rng.uniform(1, 2, 10) + rng.standard_normal(60)
    return X, y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)


class Killed(BaseException):
    """What a kill does to a process: nothing after it runs."""


class Dying(DenseDesign):
    """A design whose process dies before so many readings are done."""

    left = 10**9

    def scores_many(self, V: Any) -> Any:
        self.count()
        return super().scores_many(V)

    def count(self) -> None:
        if not self.left:
            raise Killed
        self.left -= 1


#: Norm, loss, intercept, and how many of the last readings are missing.
CASES: list[tuple[Any, str, bool, int]] = [
    ("l1", "squared", True, 3),
    ("l1", "logistic", True, 1),
    (norms.KSupport(5), "squared", False, 3),
]


@pytest.mark.parametrize(("norm", "loss", "intercept", "missing"), CASES)
def test_a_killed_path_goes_on(
    tmp_path: Path, norm: Any, loss: str, intercept: bool, missing: int
) -> None:
    X, y = data(loss)
    design = Dying(np.asfortranarray(X))
    shared: dict[str, Any] = {
        "norm": norm, "loss": loss, "fit_intercept": intercept, "n_alphas": 60, "tol": 1e-8,
    }  # fmt: skip
    whole = paths.path(design, y, **shared)
    # All readings but those at zero and the last ones.
    design.left = max(int(whole.passes) - 1 - missing, 1)
    with pytest.raises(Killed):
        paths.path(design, y, **shared, checkpoint=tmp_path)
    design.left = 10**9
    again = paths.path(design, y, **shared, checkpoint=tmp_path)
    assert again.converged
    np.testing.assert_allclose(again.objectives, whole.objectives, rtol=3e-8)
    # One more proves what was there; what joined last is learned anew.
    assert again.passes <= 2 * whole.passes
    # A third call has nothing left to do: the reading at zero, and one that proves every level.
    third = paths.path(design, y, **shared, checkpoint=tmp_path)
    assert third.passes == 2
    assert third.converged
    for one, other in zip(again.results, third.results, strict=True):
        np.testing.assert_array_equal(one.columns, other.columns)
        np.testing.assert_array_equal(one.weights, other.weights)
        assert len(other.history) == len(one.history)  # the point again, priced anew


def test_a_tighter_gap_and_another_grid_begin_from_what_is_there(tmp_path: Path) -> None:
    X, y = data("logistic")
    shared: dict[str, Any] = {"loss": "logistic", "checkpoint": tmp_path}
    loose = paths.path(X, y, n_alphas=20, tol=1e-3, **shared)
    tight = paths.path(X, y, alphas=loose.alphas[:15], tol=1e-9, **shared)
    assert tight.converged
    assert tight.relative_gaps.max() <= 1e-9
    expected = paths.path(
        X, y, alphas=loose.alphas[:15], tol=1e-9, loss="logistic", fit_intercept=True
    )
    np.testing.assert_allclose(tight.objectives, expected.objectives, rtol=1e-8)


def test_folds_have_files_of_their_own(tmp_path: Path) -> None:
    X, y = data()
    design = Dying(np.asfortranarray(X))
    task = Problem.build(design, y, as_loss("squared"), Regularizer(norms.L1(), "penalized", 1.0))
    levels = paths.alpha_grid(paths.largest_useful_alpha(task), 20, 0.05)[None, :]
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    score = held_out_loss([task])
    arguments = [task], [norms.L1()], levels, folds, score
    whole = paths.cross_validate(*arguments, Settings(1e-8))
    kept = Settings(1e-8, checkpoint=tmp_path)
    design.left = 2
    with pytest.raises(Killed):
        paths.cross_validate(*arguments, kept)
    design.left = 10**9
    assert len(list(tmp_path.iterdir())) >= 4  # a file for each level of each fold
    found = paths.cross_validate(*arguments, kept)
    np.testing.assert_allclose(found.scores, whole.scores, rtol=1e-3)
    assert found.relative_gaps.max() <= 1e-8
    again = paths.cross_validate(*arguments, kept)
    np.testing.assert_array_equal(again.scores, found.scores)
    assert again.passes == 1


def test_levels_one_by_one_are_kept_too(tmp_path: Path) -> None:
    X, y = data()
    shared: dict[str, Any] = {"n_alphas": 4, "checkpoint": tmp_path}
    first = paths.path(X, y, **shared, observers=[lambda progress: None])
    again = paths.path(X, y, **shared, observers=[lambda progress: None])
    np.testing.assert_array_equal(again.columns, first.columns)


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    X, y = data()
    kept: dict[str, Any] = {"alphas": [300.0 / len(y), 200.0 / len(y)], "checkpoint": tmp_path}
    paths.path(X, y, **kept)
    files = list(tmp_path.iterdir())
    changed = X.copy()
    changed[0] = 0.0
    with pytest.raises(ValueError, match="of another data"):
        paths.path(changed, y, **kept)
    for file in files:
        os.truncate(file, 100)
    with pytest.raises(ValueError, match="cannot be read"):
        paths.path(X, y, **kept)
