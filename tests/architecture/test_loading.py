"""Parts are loaded when they are used, and the answer to a name does not depend on imports."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from atomlearn.core import Loss, Norm, loaded
from atomlearn.core.catalogue import DESIGNS, LOSSES, NORMS, TARGETS, register_norm
from tests.oracles.sources import PACKAGE

#: Packages that import their names on first use; the stub beside each names them for type checkers.
LAZY = [
    ".".join(("atomlearn", *path.parent.relative_to(PACKAGE).parts))
    for path in sorted(PACKAGE.rglob("__init__.py"))
    if "lazy(" in path.read_text(encoding="utf-8")
]
#: Files that one fit by an estimator loads, and packages of which it loads nothing.
MOST_FILES = 130
NOT_LOADED = ("cli", "findings", "lifting", "matrices", "reports", "storage", "subsets", "survival")


def run(code: str) -> str:
    """Return what a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("package", LAZY)
def test_stubs_name_what_packages_import_on_first_use(package: str) -> None:
    module = importlib.import_module(package)
    file = Path(str(module.__file__))
    stub = ast.parse(file.with_suffix(".pyi").read_text(encoding="utf-8"))
    source = ast.parse(file.read_text(encoding="utf-8"))
    (call,) = [node for node in ast.walk(source) if isinstance(node, ast.Call)]
    offered = set()
    for names in ast.literal_eval(call.args[1]).values():
        offered.update(names.split())
    stubbed = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            stubbed.update({alias.name: node.module for alias in node.names})
    assert set(stubbed) == offered
    for name, home in stubbed.items():
        value = getattr(importlib.import_module(str(home)), name)
        assert getattr(module, name) is value
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        _ = module.absent


def test_entries_of_the_catalogue_are_what_they_say() -> None:
    for part, required in NORMS.values():
        assert issubclass(loaded(part), Norm)
        assert all(isinstance(name, str) for name in required)
    for name, (part, task) in LOSSES.items():
        kind = loaded(part)
        assert issubclass(kind, Loss)
        assert (kind.name, kind.task) == (name, task)
    for kind in DESIGNS:
        assert callable(loaded(kind.make))
        assert kind.names is None or callable(loaded(kind.names))
    assert all(callable(loaded(read)) for read in TARGETS)
    assert isinstance(loaded("atomlearn.core:pieces"), ModuleType)


def test_the_core_alone_knows_every_name() -> None:
    printed = run(
        "import numpy as np\n"
        "from atomlearn.core.solve import solve\n"
        "X = np.eye(4)\n"
        "Y = np.arange(8.0).reshape(4, 2)\n"
        "print(solve(X, Y, norm='rows', alpha=0.1, fit_intercept=False).status.is_converged)\n"
        "try:\n"
        "    solve(X, Y[:, 0], norm='trees', alpha=0.1)\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    assert printed.startswith("True\nnorm 'trees' needs groups")


def test_a_fit_loads_little_of_the_package() -> None:
    printed = run(
        "import sys\n"
        "from atomlearn import AtomicRegressor\n"
        "AtomicRegressor(alpha=0.1).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0.0, 1.0, 2.0])\n"
        "print(*[name for name in sys.modules if name.split('.')[0] == 'atomlearn'])\n"
    )
    modules = printed.split()
    assert len(modules) <= MOST_FILES
    found = {name.split(".")[1] for name in modules if "." in name}
    assert not found & set(NOT_LOADED)
    assert not [name for name in modules if name.startswith("atomlearn.papers.")]


def test_help_of_the_command_line_loads_neither_scipy_nor_the_core() -> None:
    printed = run(
        "import sys\n"
        "from atomlearn.cli.arguments import build_parser\n"
        "build_parser().format_help()\n"
        "print(*sys.modules)\n"
    )
    assert not [name for name in printed.split() if name.startswith(("scipy", "atomlearn.core"))]


@pytest.mark.parametrize("name", ["Largest_Entry", "largest-entry", "Largest"])
def test_a_norm_whose_name_no_look_up_finds_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="small letters and digits"):
        register_norm(name, "atomlearn.core.norms.l1:L1")
    assert name not in NORMS


def test_tests_of_the_core_import_nothing_above_it() -> None:
    command = [sys.executable, "-m", "tests.core_alone", "--collect-only", "-n", "0", "tests/core"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
