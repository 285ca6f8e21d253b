"""Every Example in a docstring runs as it stands."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src"
WITH_EXAMPLES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((SOURCES / "atomlearn").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


# Clusters that are recovered exactly have no edges between them.
@pytest.mark.filterwarnings("ignore:Graph is not fully connected:UserWarning")
@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_in_docstrings_run(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # What an example writes is not left behind.
    assert doctest.testmod(importlib.import_module(module)).failed == 0
