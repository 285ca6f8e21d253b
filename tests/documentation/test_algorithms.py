"""docs/papers/algorithms.md: every call exists and names its algorithm, and all of them run."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "papers" / "algorithms.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| \[(\w)\] \| (.+?) \| `(atomlearn[\w.]+)` \| (.+) \|$", PAGE, re.MULTILINE)


def called(path: str) -> Any:
    """Return the object at a dotted path, whose first parts are a module."""
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for name in parts[size:]:
            found = getattr(found, name)
        return found
    raise AssertionError(path)


def test_the_table_has_every_algorithm_of_the_papers() -> None:
    numbered = {
        (paper, found) for paper, what, *_ in ROWS for found in re.findall(r"Algorithm \d", what)
    }
    expected = [("A", 1), ("L", 1), ("V", 2), ("T", 5)]
    wanted = {(paper, f"Algorithm {k}") for paper, most in expected for k in range(1, most + 1)}
    assert wanted <= numbered
    lines = [line for line in PAGE.splitlines() if "`atomlearn." in line]
    assert len(lines) == len(ROWS) > 20


@pytest.mark.parametrize(("paper", "what", "path", "says"), ROWS)
def test_the_docstring_of_each_call_names_its_algorithm(
    paper: str, what: str, path: str, says: str
) -> None:
    words = " ".join((inspect.getdoc(called(path)) or "").split())
    assert says in words, f"{path} does not say {says!r}"


def test_all_calls_run(capsys: pytest.CaptureFixture[str]) -> None:
    [block] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    [shown] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "algorithms.md", "exec"), {})
    assert capsys.readouterr().out == shown


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_rivals_are_imported_as_their_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "experiments" / "rivals" / "README.md").read_text(encoding="utf-8")
    rivals = importlib.import_module("experiments.rivals")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "rivals/README.md", "exec"), names)
    assert capsys.readouterr().out == "CONVERGED\n"
    for name in rivals.__all__:
        assert name in names, name
        assert f"`{name}`" in page, name
