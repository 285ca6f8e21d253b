"""python -m tests.mutation --known | --random N: which changes of one line do the tests notice?"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from tests.mutation.known import KNOWN, SRC
from tests.mutation.operators import changed
from tests.mutation.reach import Chosen, Reach, tests_that_run

#: Which tests are there for which files: the first that fits. Those of the file itself, by its
#: name, come first, as most changes are noticed there.
ROOMS = {
    "verification": "tests/verification",
    "core/problem": "tests/core/solvers/test_contracts_of_run.py "
                    "tests/core/masters/test_master_suite.py tests/certificates/test_rounding.py "
                    "tests/core/problem/test_offset_and_free.py tests/core/solvers/test_run.py",
    "core/losses": "tests/core/losses/test_losses.py tests/core/losses/test_pieces.py "
                   "tests/core/losses tests/core/problem/test_offset_and_free.py",
    "core/norms": "tests/core/norms/test_norm_checks.py tests/core/norms/test_norm_parameters.py "
                  "tests/core/norms/test_norm_combine.py "
                  "tests/core/norms/test_norm_oracles.py",
    "core/masters": "tests/core/masters/test_master_suite.py "
                    "tests/core/masters/test_linear_algebra.py tests/core/masters",
    "core/solvers": "tests/core/solvers/test_contracts_of_run.py tests/core/solvers/test_run.py "
                    "tests/core/solvers/test_checkpoint.py "
                    "tests/core/solvers/test_solver_suite.py",
    "core/data": "tests/core/data/test_explicit_designs.py tests/core/data/test_wrappers.py "
                 "tests/core/data/test_scores.py tests/core/data/test_as_design.py "
                 "tests/core/data/test_blocks.py tests/core/data/test_standardized.py",
    ".": "tests/estimators/test_exports.py tests/core/norms/test_names.py tests/architecture",
    "_kernels": "tests/kernels",
    "_support": "tests/estimators/test_other_names.py tests/core/masters/test_deadline.py "
                "tests/core/problem/test_refusals.py tests/core/data/test_as_design.py",
    "cli": "tests/cli",
    "core": "tests/core/solvers/test_contracts_of_run.py tests/core/problem/test_results.py",
    "core/interfaces": "tests/core/solvers/test_contracts_of_run.py tests/core/data/test_scores.py "
                       "tests/core/problem/test_refusals.py",
    "core/paths": "tests/core/paths",
    "datasets": "tests/datasets/test_gene_sets.py tests/testing/test_synthetic.py",
    "estimators": "tests/estimators",
    "estimators/matrices": "tests/estimators/test_matrix_estimators.py "
                           "tests/estimators/test_matrix_completion.py",
    "findings": "tests/findings",
    "lifting": "tests/lifting/test_lifted_oracles.py tests/lifting/test_trees_and_hierarchies.py "
               "tests/lifting/test_membership.py tests/lifting/test_lifted_norm_checks.py "
               "tests/lifting/test_lifted_problems.py",
    "maps": "tests/maps/test_additive.py tests/maps/test_anova.py "
            "tests/maps/test_kernels.py tests/estimators/test_additive_models.py",
    "maps/pairs": "tests/maps/test_polynomial.py tests/maps/test_pair_index.py "
                  "tests/maps/test_cubic.py tests/maps/test_device_pairs.py",
    "matrices": "tests/matrices/test_matrix_norms.py tests/matrices/test_task_block.py "
                "tests/matrices/test_matrix_generation.py",
    "matrices/designs": "tests/matrices/test_matrix_designs.py "
                        "tests/storage/test_sparse_tensors.py tests/matrices/test_task_block.py",
    "matrices/norms": "tests/matrices/test_matrix_norms.py",
    "matrices/solver": "tests/matrices/test_matrix_generation.py "
                       "tests/estimators/test_matrix_completion.py",
    "papers": "tests/papers/test_fista_and_kfcfw.py tests/papers/test_feature_generation.py "
              "tests/papers/test_atom_solvers.py tests/papers/test_frank_wolfe_matrices.py",
    "reports": "tests/reports",
    "storage": "tests/storage/test_on_device.py tests/storage/test_on_disk.py",
    "storage/conversion": "tests/storage/test_conversion.py",
    "storage/device": "tests/storage/test_on_device.py tests/maps/test_device_pairs.py",
    "storage/formats": "tests/storage/test_formats.py tests/storage/test_readers.py "
                       "tests/storage/test_awkward_files.py tests/storage/test_hostile_files.py",
    "storage/intake": "tests/storage/test_readers.py tests/storage/test_names_and_dates.py "
                      "tests/storage/test_awkward_files.py tests/storage/test_anndata.py",
    "storage/spread": "tests/storage/test_dask.py tests/storage/test_sites.py",
    "storage/store": "tests/storage/test_on_disk.py tests/storage/test_conversion.py",
    "subsets": "tests/subsets",
    "survival": "tests/survival/test_cox.py tests/estimators/test_survival.py",
    "testing": "tests/core/masters/test_master_suite.py tests/core/norms/test_norm_checks.py "
               "tests/core/data/test_explicit_designs.py tests/core/losses/test_loss_oracles.py",
}  # fmt: skip
#: What the tests import and is never changed: once here, instead of once a change.
HEAVY = ("numpy", "scipy.sparse.linalg", "scipy.optimize", "scipy.special", "sklearn.linear_model",
         "cvxpy", "pandas", "mpmath")  # fmt: skip
#: Seconds of processor time after which a change counts as noticed: it hangs.
PATIENCE = 60


def noticed(copy: Path, file: str, source: str, tests: str | list[str]) -> tuple[str, str]:
    """Return which test fails over the file with this source ("" for none), and the file imported.

    Tests are files, or a list of single tests in the order in which they are run. They must have
    imported the copy and nothing else of the package: else this raises.
    """
    place = copy / file
    held = place.read_text(encoding="utf-8")
    place.write_text(source, encoding="utf-8")
    child = os.fork()
    if child == 0:
        _test(copy, tests)
    status = os.waitpid(child, 0)[1]
    place.write_text(held, encoding="utf-8")
    imported = (copy / "imported").read_text().split("\n")
    if outside := [path for path in imported if not Path(path).is_relative_to(copy)]:
        raise SystemExit(f"the tests ran over other code than the changed copy: {outside[:3]}")
    return _failed(copy, status), str(place) if str(place) in imported else imported[0]


def _failed(copy: Path, status: int) -> str:
    """Return which test failed, "" where none did."""
    if status == 0:
        return ""
    # Where the package cannot even be imported, no test is.
    starts = r"^(?:FAILED|ERROR|ImportError while loading conftest) (\S+)"
    said = re.findall(starts, (copy / "said").read_text(), re.MULTILINE)
    if said or os.WIFSIGNALED(status):
        return said[0] if said else f"signal {os.WTERMSIG(status)}"
    raise SystemExit(f"the tests did not run: {(copy / 'said').read_text()[-2000:]}")


def _test(copy: Path, tests: str | list[str], reach: Reach | None = None) -> None:
    """Run the tests over the copy, and end this process."""
    os.chdir(copy)
    # The finder of an editable install would answer before sys.path is looked at: in this process,
    # and in those that tests start.
    sys.meta_path.insert(0, PathFinder)
    sys.path[:0] = [str(copy / "src"), str(copy)]
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["PYTHONPATH"] = f"{copy / 'src'}{os.pathsep}{copy / 'tests/path_first'}"
    # Now, since a change that hangs is killed; once more at the end.
    spec = find_spec("atomlearn")
    (copy / "imported").write_text(str(spec and spec.origin))
    sys.dont_write_bytecode = True
    if reach is None:
        limit = PATIENCE if isinstance(tests, list) else 5 * PATIENCE
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    said = os.open(copy / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    import pytest

    code = 1
    plugins: list[object] = []
    if isinstance(tests, list):
        plugins.append(Chosen(tests))
        tests = " ".join(sorted({name.partition("::")[0] for name in tests}))
    if reach is not None:
        plugins.append(reach)
    fast = [] if reach else ["-x"]
    try:
        code = pytest.main(
            [*fast, "-q", "-n", "0", "-p", "no:cacheprovider", *tests.split()], plugins
        )
        if reach is not None:
            reach.save()
    finally:
        parts = [part for name, part in sys.modules.items() if name.split(".")[0] == "atomlearn"]
        files = [str(part.__file__) for part in parts if getattr(part, "__file__", None)]
        if files:
            (copy / "imported").write_text("\n".join(files))
        sys.stdout.flush()
        os._exit(int(code))


def tests_of(file: str, room: str) -> str:
    """Return the tests of a room: first those of the file by its name."""
    stem = Path(file).stem
    near = [str(path) for path in sorted(Path("tests").rglob(f"test_{stem}*.py"))]
    rest = [name for name in ROOMS[room].split() if name not in near]
    return " ".join(near + rest)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="files that match this expression")
    parser.add_argument("--trusting", action="store_true", help="the tests pass as it is")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--reach", type=Path, help="a file: which lines each test runs")
    parser.add_argument("--learn", nargs="*", default=[], help="tests whose lines to add to it")
    return parser.parse_args()


def main() -> int:
    """Print one line a change; return the number of those that no test noticed."""
    options = _options()
    for name in HEAVY:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("src", "tests", "benchmarks", "pyproject.toml"):
            place = shutil.copytree if Path(part).is_dir() else shutil.copy
            place(part, copy / part)
        # The kernels are built once, and live in the install.
        where = "from atomlearn._kernels import _native; print(_native.__file__)"
        built = subprocess.run([sys.executable, "-c", where], capture_output=True, check=True)
        shutil.copy(os.fsdecode(built.stdout.strip()), copy / "src/atomlearn/_kernels")
        if options.learn:
            return _learned(copy, options)
        return _survivors(copy, options)


def _learned(copy: Path, options: argparse.Namespace) -> int:
    """Add what the tests run to the file, folder by folder."""
    for tests in options.learn:
        if not (child := os.fork()):
            _test(copy, tests, Reach("src/atomlearn/core/", options.reach.absolute()))
        status = os.waitpid(child, 0)[1]
        print(tests, "exit", status, (copy / "said").read_text().splitlines()[-1], flush=True)
    return 0


def _survivors(copy: Path, options: argparse.Namespace) -> int:
    """Print one line a change; return the number of those that no test noticed."""
    sound: dict[str, bool] = {}
    reach = json.loads(options.reach.read_text()) if options.reach else None
    killed, survived, ends = 0, 0, time.monotonic() + options.seconds
    for file, line, tests, source, what in _changes(options):
        if not re.search(options.only, file) or time.monotonic() > ends:
            continue
        chosen = tests_that_run(reach, file, line) if reach is not None and line else []
        if chosen:
            by, imported = noticed(copy, file, source, chosen)
            what = f"{what} ({len(chosen)} tests)"
        else:
            if tests not in sound and not options.trusting:
                # Tests that fail over the package as it is would notice everything.
                held = (copy / file).read_text(encoding="utf-8")
                sound[tests] = not noticed(copy, file, held, tests)[0]
            if not sound.get(tests, True):
                raise SystemExit(f"{tests} fail without any change")
            by, imported = noticed(copy, file, source, tests)
        killed, survived = killed + bool(by), survived + (not by)
        print("killed  " if by else "SURVIVED", file, what, by and f"by {by}", flush=True)
        print("         imported:", imported, flush=True)
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
            what = f"{old.strip()!r} -> {new.strip()!r}"
            yield SRC + name, 0, tests, source.replace(old, new), what
    rng = random.Random(options.seed)
    rooms = list(ROOMS)
    drawn = 0
    while drawn < options.random:
        room = rng.choice(rooms)
        path = rng.choice(
            sorted(p for p in Path(SRC, room).glob("*.py") if p.name != "__init__.py")
        )
        source, line, what = changed(path, rng)
        if line:
            drawn += 1
            yield str(path), line, tests_of(str(path), room), source, f"line {line}: {what}"


if __name__ == "__main__":
    sys.exit(main())
