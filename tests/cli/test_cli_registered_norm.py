"""A registered norm is known by name to the estimators and to the command line."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from atomlearn import AtomicRegressor
from atomlearn.cli import main
from atomlearn.core.catalogue import NORMS
from tests.core.norms.test_strangers_norm import PAIRS, P, WeightedL1, data


def test_by_name_from_the_estimators_and_the_command_line(monkeypatch, tmp_path):
    monkeypatch.setitem(NORMS, "weightedl1", (WeightedL1, ()))
    X, y = data()
    model = AtomicRegressor("weighted_l1", alpha=0.1).fit(X, y)
    known = AtomicRegressor(PAIRS["weighted l1"][1], alpha=0.1).fit(X, y)
    assert_allclose(model.coef_, known.coef_, atol=1e-4)
    header = ",".join([*(f"x{j}" for j in range(P)), "y"])
    data_file, out = tmp_path / "data.csv", tmp_path / "out"
    np.savetxt(data_file, np.column_stack([X, y]), delimiter=",", header=header, comments="")
    command = ["select", data_file, "--target", "y", "--norm", "weightedl1", "--alpha", "0.1"]
    assert main([str(word) for word in [*command, "--out", out, "--quiet"]]) == 0
    assert (out / "model.json").exists()
