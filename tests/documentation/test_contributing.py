"""CONTRIBUTING and the walks name files and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.oracles.sources import nodes

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "atomlearn"
#: Words in backticks that are neither files nor names of the package.
OTHER = re.compile(
    r"make .*|atomlearn.*|report\.html|top\(count\)|y|coef_|isinstance|getattr|hasattr"
)


def defined() -> set[str]:
    """Return the names of all classes, functions and variables of the package and its tests."""
    found = {path.stem for path in PACKAGE.rglob("*.py")}
    for each in nodes().values():
        for node in each:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name | ast.arg):
                found.add(node.id if isinstance(node, ast.Name) else node.arg)
    return found


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/walks.md"])
def test_what_is_named_exists(page: str) -> None:
    text = re.sub(
        r"```.*?```|{doc}`\w+`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL
    )
    known = defined() | {"WRITERS"}
    words = set(re.findall(r"`([^`]+)`", text))
    assert len(words) > 50
    lost = []
    for word in words:
        path = word.removesuffix("/")
        if "/" in word or word.endswith((".py", ".md")) or word.startswith("."):
            if not (ROOT / path).exists() and not list(PACKAGE.rglob(path)):
                lost.append(word)
        elif not OTHER.fullmatch(word):
            names = re.findall(r"[A-Za-z_]\w*", word.split("(")[0])
            lost += [word] if set(names) - known else []
    assert not lost


def test_contributing_is_short_and_in_ordinary_words() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    assert not re.search(r"\b(room|wing|door|facade)s?\b", text)
