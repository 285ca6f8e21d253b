"""Files and functions stay short.

What is longer is listed here, and the lists only shrink.
"""

from __future__ import annotations

import ast
from functools import cache

from tests.oracles.sources import PACKAGE, nodes

#: Lines of a file without its docstrings, which may be as long as a reader needs.
MOST_LINES_OF_A_FILE = 400
#: Lines of a function without its docstring, its signature included.
MOST_LINES_OF_A_FUNCTION = 60
#: Longer files, with the lines they may have at most.
LONG_FILES: dict[str, int] = {}
#: Longer functions, as file:name, with the lines they may have at most.
LONG_FUNCTIONS: dict[str, int] = {}


def prose_lines(node: ast.AST) -> int:
    """Return the number of lines of the docstring of a module, class or function, 0 without one."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) or not node.body:
        return 0
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return (first.end_lineno or 0) - first.lineno + 1 if documented else 0


def lines_of_files() -> dict[str, int]:
    return {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        - sum(map(prose_lines, nodes_of_file))
        for path, nodes_of_file in nodes().items()
    }


@cache
def lines_of_functions() -> dict[str, int]:
    found = {}
    for path, nodes_of_file in nodes().items():
        for node in nodes_of_file:
            if isinstance(node, ast.FunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1 - prose_lines(node)
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
