"""The Python of docs/own_norm.md runs as it stands, and does what the page says it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import solve

PAGE = Path(__file__).resolve().parents[2] / "docs" / "own_norm.md"


def blocks() -> list[str]:
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 2
    return found


@pytest.fixture(scope="module")
def namespace() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in blocks():
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_it_is_thirty_lines() -> None:
    lines = [line for line in blocks()[0].splitlines() if line.strip()]
    assert len(lines) <= 30


def test_the_oracle_finds_the_best_interval(namespace: dict[str, Any]) -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal(9) if seed % 2 else -np.abs(rng.standard_normal(9))
        columns, values = namespace["best_interval"](z)
        sums = [abs(z[i:j].sum()) for i in range(9) for j in range(i + 1, 10)]
        assert_allclose(values @ z[columns], max(sums))


def test_the_fit_is_proved(namespace: dict[str, Any]) -> None:
    result = namespace["result"]
    assert result.converged
    assert result.relative_gap <= 1e-6


def test_cross_validation_takes_the_intervals(namespace: dict[str, Any]) -> None:
    assert namespace["model"].norm_ == namespace["intervals"]
    X, y, truth = namespace["X"], namespace["y"], namespace["truth"]
    lasso = min(
        float(np.linalg.norm(solve(X, y, norm="l1", level=level).coef - truth))
        for level in (10.0, 20.0, 40.0, 80.0)
    )
    assert np.linalg.norm(namespace["model"].coef_ - truth) < 0.5 * lasso


def test_the_value_of_the_norm(namespace: dict[str, Any]) -> None:
    assert_allclose(namespace["value"], 2.5, rtol=1e-8)
    assert namespace["gap"] <= 2.5e-8
