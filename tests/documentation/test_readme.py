"""The Python of the README runs as it stands, and does what the README says it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture(scope="module")
def namespace() -> dict[str, Any]:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks, "the README has lost its Python example"
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    return names


def test_the_fit_is_proved(namespace: dict[str, Any]) -> None:
    result = namespace["result"]
    assert result.converged
    assert result.relative_gap <= 1e-6


def test_the_selector_gives_exactly_the_features_asked_for(namespace: dict[str, Any]) -> None:
    selector = namespace["selector"]
    assert selector.get_support(indices=True).size == 10
    assert set(selector.predict(namespace["X"])) <= {-1.0, 1.0}


def test_the_selector_finds_the_features_that_made_the_target(namespace: dict[str, Any]) -> None:
    selected = namespace["selector"].get_support(indices=True)
    np.testing.assert_array_equal(selected, np.arange(10))
