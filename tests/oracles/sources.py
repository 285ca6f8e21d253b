"""The package's own source files, parsed once for all the tests that look at them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "atomlearn"


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax of every file."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def nodes() -> dict[Path, list[ast.AST]]:
    """Return all nodes of every file: walking takes as long as parsing."""
    return {path: list(ast.walk(tree)) for path, tree in trees().items()}
