"""Files and functions stay short, and what the house got rid of does not come back.

What is longer is listed here, and the lists only shrink; so do the counts.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.oracles.sources import PACKAGE, nodes, trees

MOST_LINES_OF_A_FILE = 400
#: Lines of a function without its docstring, its signature included.
MOST_LINES_OF_A_FUNCTION = 50
#: Longer files, with the lines they may have at most.
LONG_FILES: dict[str, int] = {}
#: Longer functions, as file:name, with the lines they may have at most.
LONG_FUNCTIONS: dict[str, int] = {}

#: Questions for the type of something: abilities with neutral answers are asked instead.
MOST_ISINSTANCE = 241
#: Module constants: numbers belong to a documented structure of settings.
MOST_CONSTANTS = 177
#: Protocols of abilities.
MOST_PROTOCOLS = 0
#: Lines of code of the package and of its core: without prose, comments and blank lines.
MOST_CODE = 46_912
MOST_CODE_OF_THE_CORE = 13_556


def lines_of_files() -> dict[str, int]:
    return {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def lines_of_functions() -> dict[str, int]:
    found = {}
    for path, nodes_of_file in nodes().items():
        for node in nodes_of_file:
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                prose = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
                lines = (node.end_lineno or 0) - node.lineno + 1 - prose
                name = f"{path.relative_to(PACKAGE)}:{node.name}"
                found[name] = max(lines, found.get(name, 0))
    return found


def too_long(found: dict[str, int], most: int, listed: dict[str, int]) -> dict[str, int]:
    return {name: lines for name, lines in found.items() if lines > listed.get(name, most)}


def test_files_stay_short() -> None:
    assert not too_long(lines_of_files(), MOST_LINES_OF_A_FILE, LONG_FILES)


def test_functions_stay_short() -> None:
    assert not too_long(lines_of_functions(), MOST_LINES_OF_A_FUNCTION, LONG_FUNCTIONS)


def test_what_is_listed_is_still_longer() -> None:
    """What became short leaves the list, so that it stays short."""
    files, functions = lines_of_files(), lines_of_functions()
    short = {f for f in LONG_FILES if files.get(f, 0) <= MOST_LINES_OF_A_FILE}
    short |= {f for f in LONG_FUNCTIONS if functions.get(f, 0) <= MOST_LINES_OF_A_FUNCTION}
    assert not short


def test_types_are_asked_for_no_more_often() -> None:
    calls = [
        node.func.id
        for found in nodes().values()
        for node in found
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert calls.count("isinstance") <= MOST_ISINSTANCE


def test_module_constants_do_not_come_back() -> None:
    names = []
    for tree in trees().values():
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    assert len([name for name in names if name.strip("_").isupper()]) <= MOST_CONSTANTS


def lines_of_code(path: Path) -> int:
    """Return the lines of a file that are neither blank nor comments nor docstrings."""
    prose = 0
    for node in nodes()[path]:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                text = ast.get_docstring(node, clean=False) or ""
                prose += sum(bool(line.strip()) for line in text.splitlines())
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return len([line for line in lines if line and not line.startswith("#")]) - prose


def test_code_does_not_grow_unseen() -> None:
    found = {path: lines_of_code(path) for path in trees()}
    core = sum(lines for path, lines in found.items() if PACKAGE / "core" in path.parents)
    assert core <= MOST_CODE_OF_THE_CORE
    assert sum(found.values()) <= MOST_CODE


def test_abilities_are_methods_and_no_protocols() -> None:
    classes = [
        node for found in nodes().values() for node in found if isinstance(node, ast.ClassDef)
    ]
    bases = [ast.unparse(base) for node in classes for base in node.bases]
    assert len([base for base in bases if base.split("[")[0] == "Protocol"]) <= MOST_PROTOCOLS
