"""The Python of docs/implicit.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "implicit.md"


def test_the_page_runs(capsys) -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "['x11', 'x4'] True" in printed
    assert "'x3:x10'" in printed
    assert names["effect"].shape == (names["one"].size, names["other"].size)
    assert "[1.  0.5 0. ]" in printed
    assert "rbf(gamma=" in printed
    assert names["values"].size > 100
    assert names["model"].score(names["moons"], names["label"]) > 0.9
