"""A fit that leaves nothing is told as one, by the page and by the summary."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from atomlearn import AtomicRegressor, norms, report


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_constant_targets_are_fitted_exactly(shift: float, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 5))
    y = np.full(60, 3.0 + shift)
    model = AtomicRegressor(norms.L1(), 0.1).fit(X, y)
    assert model.status_.is_converged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report(model, X, y, tmp_path / "report.html")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["fitted_exactly"]
    assert 0.0 <= summary["proved_gap"] <= 1e-15
    assert "fitted exactly" in (tmp_path / "report.html").read_text()
