"""The Python of docs/first_contact.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first_contact.md"


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    names: dict[str, Any] = {}
    [block] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, PAGE.name, "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    # v1 and the three columns of the city.
    assert printed[0] == "['v1', 'city=A', 'city=B', 'city=C']"
    assert float(printed[1]) > 0.7
    assert printed[2] == "False"
