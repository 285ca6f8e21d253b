"""No file of the package imports itself through others, imports inside functions included.

The linter checks layers of folders; a circle of files inside one folder, or one that an import
inside a function closes, needs this test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.oracles.sources import PACKAGE, nodes


def module_names() -> dict[str, list[ast.AST]]:
    """Return the nodes of each file by the dotted name of its module."""
    found = {}
    for path, inside in nodes().items():
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = inside
    return found


def only_for_types(inside: Iterable[ast.AST]) -> set[ast.AST]:
    """Return the nodes under ``if TYPE_CHECKING``, which never run."""
    blocks = (
        node
        for node in inside
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    )
    return {node for block in blocks for line in block.body for node in ast.walk(line)}


def imported(inside: list[ast.AST], known: Iterable[str]) -> set[str]:
    """Return the modules among ``known`` that these nodes import, at any depth of the file."""
    skipped = only_for_types(inside)
    names = set()
    for node in inside:
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = whole.intersection(known)
            names |= modules if modules == whole else modules | {str(node.module)}
    return names.intersection(known)


def circle_of(imports: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of one circle, or nothing."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_circle_of_imports() -> None:
    files = module_names()
    imports = {name: imported(inside, files) - {name} for name, inside in files.items()}
    assert sum(map(len, imports.values())) > 1000
    circle = circle_of(imports)
    assert not circle, f"these files import each other: {' <- '.join(circle)}"


@pytest.mark.parametrize(
    "line",
    ["import a.b", "from a.b import name", "from a import b", "def f():\n    from a import b"],
)
def test_every_form_of_import_is_followed(line: str) -> None:
    inside = list(ast.walk(ast.parse(line)))
    assert imported(inside, ["a", "a.b"]) == {"a.b"}
    assert circle_of({"a.b": {"c"}, "c": {"a.b"}})


def test_imports_for_types_are_left_out() -> None:
    inside = list(ast.walk(ast.parse("if TYPE_CHECKING:\n    import a.b")))
    assert imported(inside, ["a", "a.b"]) == set()
