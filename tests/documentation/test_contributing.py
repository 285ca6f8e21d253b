"""CONTRIBUTING names files and functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.oracles.sources import nodes

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "atomlearn"


def test_the_four_walks_go_through_what_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walks = text[text.index("## Four walks") : text.index("## What a change")]
    defined = set()
    for found in nodes().values():
        for node in found:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Name):
                defined.add(node.id)
    lost = []
    for word in re.findall(r"`([^`]+)`", walks):
        if "/" in word:
            there = (PACKAGE / word).exists()
        else:
            there = word.split("(")[0].split(".")[-1] in defined
        if not there and " " not in word and not word.endswith((".html", "=")):
            lost.append(word)
    assert not lost
    for walk in walks.split("\n\n")[1:]:
        assert len(walk.splitlines()) <= 10
