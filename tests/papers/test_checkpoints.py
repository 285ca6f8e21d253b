"""Checkpoints of the solvers of the papers: a killed solve continues to the same answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import norms, solvers
from atomlearn.result import Status
from atomlearn.solvers import Checkpoint
from tests.core.solvers.test_checkpoint import _data, _Kill, _Killed, assert_resumes
from tests.oracles.sums import solve_sum


def test_feature_generation_selects_the_same_features_in_the_same_order(tmp_path: Path) -> None:
    X, y = _data()
    kind: dict[str, Any] = {"norm": norms.KSupport(4), "form": "squared", "level": 0.1}
    solver = solvers.FeatureGeneration(n_features=20)
    whole = solve_sum(X, y, solver=solver, **kind)
    assert whole.status is Status.COLUMN_LIMIT
    for kill_after in range(whole.iterations):
        folder = tmp_path / str(kill_after)
        keep = [Checkpoint(folder, every_s=0), _Kill(kill_after)]
        with pytest.raises(_Killed):
            solve_sum(X, y, solver=solver, **kind, observers=keep)
        resumed = solve_sum(X, y, solver=solver, **kind, observers=[Checkpoint(folder)])
        assert resumed.status is Status.COLUMN_LIMIT
        for mine, theirs in zip(resumed.state.selection(), whole.state.selection(), strict=True):
            assert_array_equal(mine, theirs)
        assert_allclose(resumed.weights, whole.weights, rtol=1e-5)


@pytest.mark.parametrize(
    ("solver", "norm", "form", "level"),
    [
        (solvers.FISTA(), norms.L1(), "penalized", 8.0),
        (solvers.FeatureGeneration(), norms.KSupport(4), "squared", 3.0),
    ],
)
@pytest.mark.parametrize("kill_after", [0, 1, 3])
def test_killed_and_resumed_is_the_same_answer(
    solver: Any, norm: Any, form: str, level: float, kill_after: int, tmp_path: Path
) -> None:
    assert_resumes(solver, norm, form, {"level": level}, kill_after, tmp_path)
