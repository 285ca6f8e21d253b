"""The table of docs/scaling.md is what the model prints."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def model() -> Any:
    spec = importlib.util.spec_from_file_location(
        "scaling_model", ROOT / "benchmarks" / "scaling_model.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_table_is_that_of_the_model(model: Any) -> None:
    rows = re.findall(r"^\|[^|]*\| ([\d.]+) s \| ([\d.]+) (s|min) \|", PAGE, re.MULTILINE)
    assert len(rows) == len(model.CASES)
    for (one, total, unit), (data, machine, layout) in zip(rows, model.CASES.values(), strict=True):
        assert model.pass_cost(data, machine, layout).seconds == pytest.approx(float(one), rel=0.05)
        parts = model.fit_seconds(data, machine, layout, 20, 100)
        passes = model.simulate(data, machine, layout, 20).mean()
        seconds = float(total) * (60 if unit == "min" else 1)
        assert passes + sum(parts[1:]) == pytest.approx(seconds, rel=0.05)
