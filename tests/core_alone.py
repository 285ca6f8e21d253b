"""The tests of the core without the packages above it: python -m tests.core_alone [ARGUMENTS].

They run over a copy of the package that has only the folders of ``KEPT`` and the modules of public
names, without the names of other packages. Arguments are those of pytest; without any, all of
``tests/core`` runs, one worker a core.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.oracles.sources import PACKAGE

#: The core, what it is built on, and the suites that its tests use.
KEPT = ("core", "_kernels", "_support", "testing")
ALL = ["-n", "auto", "--dist", "worksteal", "tests/core"]
#: Run as Python starts: the finder of an editable install would import what the copy does not have.
START = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
"""


def copied(folder: Path) -> Path:
    """Return the copy of the package in this folder."""

    def dropped(parent: str, names: list[str]) -> list[str]:
        if Path(parent) != PACKAGE:
            return []
        return [name for name in names if (PACKAGE / name).is_dir() and name not in KEPT]

    package = Path(shutil.copytree(PACKAGE, folder / "atomlearn", ignore=dropped))
    # The kernels are compiled once, for the installed package.
    ask = "from atomlearn._kernels import _native; print(_native.__file__)"
    built = subprocess.check_output([sys.executable, "-c", ask], text=True)
    shutil.copy(built.strip(), package / "_kernels")
    (folder / "sitecustomize.py").write_text(START)
    for module in package.glob("*.py"):
        module.write_text(_without_others(module.read_text(encoding="utf-8")), encoding="utf-8")
    return package


def _without_others(source: str) -> str:
    """Return the module without its imports from packages that the copy does not have."""
    lines = source.splitlines(keepends=True)
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("atomlearn."):
            folder = PACKAGE / (node.module or "").split(".")[1]
            if folder.is_dir() and folder.name not in KEPT:
                lines[node.lineno - 1 : node.end_lineno] = ["\n"] * (
                    node.end_lineno - node.lineno + 1
                )
    return "".join(lines)


def main(arguments: list[str]) -> int:
    """Run the tests over a copy, and return the exit status of pytest."""
    with TemporaryDirectory() as folder:
        package = copied(Path(folder))
        environment = os.environ | {"PYTHONPATH": folder}
        ask = "import atomlearn as a; from importlib.util import find_spec as f; "
        ask += "print(a.__file__, f('atomlearn.cli'))"
        found = subprocess.check_output([sys.executable, "-c", ask], env=environment, text=True)
        if found.split() != [str(package / "__init__.py"), "None"]:
            raise SystemExit(f"the tests would run over another package than the copy: {found}")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run([*command, *(arguments or ALL)], env=environment, check=False)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
