"""The tests that the page on peers names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def functions(source: str) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}


def test_each_line_of_what_none_has_names_a_test_that_exists() -> None:
    part = (ROOT / "docs/peers.md").read_text().split("## What none of them has")[1]
    lines = [line for line in part.splitlines() if line.startswith("| ")][1:]
    assert len(lines) >= 10
    for line in lines:
        found = re.search(r"`(tests/\S+\.py)::(test_\w+)` \|$", line)
        assert found, f"a line must end with its test, got {line!r}"
        assert found[2] in functions((ROOT / found[1]).read_text()), found[0]
