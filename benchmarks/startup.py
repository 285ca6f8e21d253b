"""How long until something runs: import, ``pip install .`` from a clean clone, ``make demo``.

Imports are whole processes, the bare interpreter beside them, interleaved. The clone is of the
last commit, in a temporary folder, and each step there starts from nothing but Python, a compiler,
make, and what pip has in its cache.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness import Options, Table

ROOT = Path(__file__).resolve().parents[1]
IMPORTS = {
    "python, nothing imported": "pass",
    "import numpy": "import numpy",
    "import atomlearn": "import atomlearn",
    "from atomlearn import solve": "from atomlearn import solve",
    "from atomlearn import AtomicClassifier": "from atomlearn import AtomicClassifier",
    "atomlearn --help": "from atomlearn.cli import main; main(['--help'])",
}


def main() -> None:
    """Time imports, then a clean clone."""
    options = Options.parse(__doc__)
    with Table("startup", options) as table:
        times: dict[str, list[float]] = {name: [] for name in IMPORTS}
        for _ in range(options.times(11, 2) + 1):
            for name, code in IMPORTS.items():
                times[name].append(_seconds([sys.executable, "-c", code], Path.cwd()))
        for name, found in times.items():
            later = found[1:]
            median = float(np.median(later))
            table.add(what=name, seconds=median, least_s=min(later), most_s=max(later), limit_s=1.0)
        if not options.smoke:
            _clean_clone(table)


def _clean_clone(table: Table) -> None:
    """Install and run the demo in clones of the last commit, each from nothing."""
    python = getattr(sys, "_base_executable", sys.executable)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for clone in ("install", "demo"):
            _seconds(["git", "clone", "--quiet", str(ROOT), clone], folder)
        _seconds([python, "-m", "venv", "environment"], folder)
        pip = [str(folder / "environment" / "bin" / "python"), "-m", "pip"]
        seconds = _seconds([*pip, "install", "--quiet", "."], folder / "install")
        table.add(what="pip install . from a clean clone", seconds=seconds, limit_s=120.0)
        seconds = _seconds(["make", "demo", f"PYTHON={python}"], folder / "demo")
        table.add(what="make demo from nothing", seconds=seconds, limit_s=240.0)


def _seconds(command: Sequence[str], folder: Path) -> float:
    """Run a command in silence; return its seconds, or say what it printed where it failed."""
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        end = (done.stdout + done.stderr)[-2000:]
        raise RuntimeError(f"{command[0]} ended with exit code {done.returncode}:\n{end}")
    return seconds


if __name__ == "__main__":
    main()
