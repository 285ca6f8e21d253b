"""python -m tests.mutation --known | --random N: which changes of one line do the tests notice?"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutation.known import KNOWN, SRC
from tests.mutation.operators import changed

#: Which tests are there for which files: the first that fits.
ROOMS = {
    "core/problem": "tests/certificates tests/masters/test_master_suite.py "
                    "tests/solvers/test_run.py tests/solvers/test_contracts_of_run.py "
                    "tests/mutation",
    "core/losses": "tests/losses",
    "core/norms": "tests/norms/test_norm_checks.py tests/norms/test_norm_oracles.py "
                  "tests/norms/test_norm_combine.py tests/norms/test_screening_rules.py "
                  "tests/norms/test_norm_atoms.py",
    "core/masters": "tests/masters",
    "core/solvers": "tests/solvers/test_run.py tests/solvers/test_solver_suite.py "
                    "tests/solvers/test_contracts_of_run.py tests/solvers/test_screening.py "
                    "tests/solvers/test_checkpoint.py tests/mutation",
    "core/data": "tests/designs/test_explicit_designs.py tests/designs/test_wrappers.py "
                 "tests/designs/test_blocks.py tests/designs/test_standardized.py "
                 "tests/designs/test_broken_sparse.py tests/designs/test_as_design.py",
}  # fmt: skip


def is_killed(copy: Path, file: str, source: str, tests: str) -> bool:
    """Return whether some test fails over the file with this source."""
    place = copy / file
    held = place.read_text(encoding="utf-8")
    place.write_text(source, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider",
             *tests.split()],
            cwd=copy, env=environment, capture_output=True, timeout=600, check=False,
        )  # fmt: skip
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_text(held, encoding="utf-8")


def main() -> int:
    """Print one line a change; return the number of those that no test noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="files that contain this")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    sound: dict[str, bool] = {}
    killed, survived, ends = 0, 0, time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("src", "tests", "pyproject.toml"):
            place = shutil.copytree if Path(part).is_dir() else shutil.copy
            place(part, copy / part)
        for file, tests, source, what in _changes(options):
            if options.only not in file or time.monotonic() > ends:
                continue
            if tests not in sound:
                # Tests that fail over the package as it is would notice everything.
                held = (copy / file).read_text(encoding="utf-8")
                sound[tests] = not is_killed(copy, file, held, tests)
            if not sound[tests]:
                raise SystemExit(f"{tests} fail without any change")
            dead = is_killed(copy, file, source, tests)
            killed, survived = killed + dead, survived + (not dead)
            print("killed  " if dead else "SURVIVED", file, what, flush=True)
    print(f"{killed} of {killed + survived} killed")
    return survived


def _changes(options: argparse.Namespace):
    if options.known:
        for name, old, new, tests in KNOWN:
            source = Path(SRC + name).read_text(encoding="utf-8")
            if source.count(old) != 1:
                raise SystemExit(
                    f"{name} has changed: {old!r} stands there {source.count(old)} times"
                )
            yield SRC + name, tests, source.replace(old, new), f"{old.strip()!r} -> {new.strip()!r}"
    rng = random.Random(options.seed)
    rooms = list(ROOMS)
    for _ in range(options.random):
        room = rng.choice(rooms)
        path = rng.choice(
            sorted(p for p in Path(SRC, room).glob("*.py") if p.name != "__init__.py")
        )
        source, line, what = changed(path, rng)
        if line:
            yield str(path), ROOMS[room], source, f"line {line}: {what}"


if __name__ == "__main__":
    sys.exit(main())
