"""The 20 lines on the page of each paper run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("paper", ["argyriou", "liu", "vinyes", "tan"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_page_runs(paper: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "experiments" / paper / "page.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 1
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 20
    exec(compile(blocks[0], f"{paper}/page.md", "exec"), {})
    assert capsys.readouterr().out
