"""Tests import public names, so that they survive a change of the internal modules."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

from tests.oracles.sources import PACKAGE

#: Share of internal names among all names that tests import from the package; it only falls.
CEILING = 0.171


def is_internal(module: str, name: str) -> bool:
    """Return whether a name is private, is a module, or comes from a module inside a package.

    Names of ``_support`` are what those of the core are: known to all packages, not to users.
    """
    module = module.replace("atomlearn._support", "atomlearn.support")
    parts = module.split(".")
    if parts[1:2] == ["testing"] or module == "atomlearn.solvers.stopping":
        return False
    if any(part.startswith("_") for part in [*parts, name.removeprefix("__")]):
        return True
    if len(parts) != 2:
        return len(parts) > 2
    place = PACKAGE / parts[1]
    is_module = (place / f"{name}.py").exists() or (place / name).is_dir()
    return is_module and name not in vars(importlib.import_module(module)).get("__all__", ())


def test_tests_import_few_internal_names() -> None:
    found = [
        is_internal(node.module, each.name)
        for path in Path(__file__).parents[1].rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and not node.level and node.module
        if node.module.split(".")[0] == "atomlearn"
        for each in node.names
    ]
    assert sum(found) / len(found) <= CEILING, f"{sum(found)} of {len(found)}"
