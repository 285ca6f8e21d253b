"""Checkpoints of estimators: one file a problem."""

from __future__ import annotations

from pathlib import Path

from numpy.testing import assert_array_equal

from atomlearn import AtomicRegressor
from atomlearn.solvers import Checkpoint
from tests.core.solvers.test_checkpoint import _data


def test_estimators_keep_one_file_a_problem(tmp_path: Path) -> None:
    X, y = _data()
    keep = (Checkpoint(tmp_path, every_s=0, many=True),)
    plain = AtomicRegressor("l1", alpha=0.05).fit(X, y)
    model = AtomicRegressor("l1", alpha=0.05, observers=keep).fit(X, y)
    assert_array_equal(model.coef_, plain.coef_)
    again = AtomicRegressor("l1", alpha=0.05, observers=keep).fit(X, y)
    assert again.n_passes_ == model.n_passes_ + 1
    AtomicRegressor("l1", alpha=0.06, observers=keep).fit(X, y)
    assert len(list(tmp_path.glob("*.npz"))) == 2
