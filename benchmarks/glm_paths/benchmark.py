"""Processor seconds of whole paths to 1e-3, 1e-6 and 1e-9, ours against seven packages.

Each solver has a process of its own, one thread, the data and the alphas. After a small path of the
same kind (imports, compilation) it runs over its tolerances, from loose to tight, with medians of
--repeats runs where a run is short. The accuracy of a run is the largest relative distance, over
alphas (and folds), of its objective to the best objective that any run reached at that alpha, by
one plain function for all. So every package runs at its best setting for each accuracy; ``tol_`` is
that setting, and for ours the gap that it proves.

glmstar and pybiglasso are under the GPL and no dependency: pip install them where they should race.

    OMP_NUM_THREADS=1 python -m benchmarks.glm_paths.benchmark [--only "Cox"] [--out FOLDER]

With --runs FOLDER all runs are kept there, and read in place of running solvers that are not in
--solvers: after a change of ours, --solvers atomlearn is enough.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.glm_paths.problems import FULL, SMOKE, Array, PathProblem
from benchmarks.glm_paths.solvers import SOLVERS, Solver
from benchmarks.harness import Options, Table
from benchmarks.harness.options import add_options
from benchmarks.harness.worker import TimeLimit, Worker

ACCURACIES = (1e-3, 1e-6, 1e-9)
#: Shorter runs than this are repeated.
SHORT_S = 1.0
#: Threads of everything that a worker loads.
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "RAYON", "NUMBA")
}


@dataclass(frozen=True, slots=True)
class Run:
    """One tolerance: medians of processor and wall seconds, objectives (n_paths, n_alphas)."""

    tolerance: float
    processor: float
    wall: float
    objectives: Array

    def distance(self, best: Array) -> float:
        """Return the largest relative distance to the best objectives."""
        return float(np.max((self.objectives - best) / np.abs(best)))


class Racer:
    """A solver with the data, alone in a process."""

    def __init__(self, problem: PathProblem, solver: type[Solver]) -> None:
        self.problem = problem
        self.solver = solver
        self.data = problem.data()

    def warm_up(self) -> None:
        """Run a small path of the same kind."""
        small = self.problem.small()
        self.solver(small).paths(small.data(), self.solver.tolerances[0])

    def run(self, tolerance: float) -> Run:
        """Fit all paths once."""
        solver = self.solver(self.problem)
        wall, processor = time.perf_counter(), time.process_time()
        fitted = solver.paths(self.data, tolerance)
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        parts = [self.data.part(rows) for rows in self.data.folds]
        pairs = zip((*parts, self.data), fitted, strict=True)
        objectives = [self.problem.objectives(part, found) for part, found in pairs]
        return Run(tolerance, processor, wall, np.array(objectives))


def runs_of(
    problem: PathProblem, solver: type[Solver], repeats: int, limit: float, best: Array | None
) -> tuple[list[Run], str]:
    """Return one solver's runs, one for each tolerance, and why it ended early, if it did.

    The last tolerance is the first that reaches the tightest accuracy, next to ``best``.
    """
    runs: list[Run] = []
    until = time.monotonic() + limit
    try:
        with Worker(Racer, problem, solver) as worker:
            worker.call("warm_up", limit_s=120.0)
            until = time.monotonic() + limit
            for tolerance in solver.tolerances:
                of_one: list[Run] = []
                while len(of_one) < repeats and (not of_one or of_one[0].processor < SHORT_S):
                    left = max(until - time.monotonic(), 0.1)
                    of_one.append(worker.call("run", tolerance, limit_s=left))
                middle = sorted(of_one, key=lambda run: run.processor)[len(of_one) // 2]
                runs.append(middle)
                if best is not None and middle.distance(best) <= ACCURACIES[-1]:
                    break
    except TimeLimit:
        return runs, f"cut at {solver.tolerances[len(runs)]:g}"
    except RuntimeError as error:
        return runs, str(error).strip().splitlines()[-1]
    return runs, ""


def rows(
    problem: PathProblem, repeats: int, limit: float, only: list[str], kept: Path | None
) -> list[dict[str, Any]]:
    """Run one problem; return a row for each solver, ours first."""
    found: dict[str, tuple[list[Run], str]] = {}
    best: Array | None = None
    for solver in [s for s in SOLVERS if s.takes_part(problem)]:
        file = kept / f"{problem.name}, {solver.name}.pickle".replace("/", "") if kept else None
        if not only or solver.name in only:
            found[solver.name] = runs_of(problem, solver, repeats, limit, best)
            if file is not None:
                file.write_bytes(pickle.dumps(found[solver.name]))
        elif file is not None and file.exists():
            found[solver.name] = pickle.loads(file.read_bytes())
        else:
            continue
        runs, _ = found[solver.name]
        known = [run.objectives for run in runs] + ([] if best is None else [best])
        best = np.min(known, axis=0) if known else None
    made = []
    for name, (runs, ended) in found.items():
        reached = [(run, run.distance(best)) for run in runs if best is not None]
        row: dict[str, Any] = {"contest": problem.name, "solver": name}
        for accuracy in ACCURACIES:
            good = [run for run, distance in reached if distance <= accuracy]
            least = min(good, key=lambda run: run.processor, default=None)
            row[f"s_to_{accuracy:.0e}"] = least.processor if least else math.nan
            row[f"wall_{accuracy:.0e}"] = least.wall if least else math.nan
            row[f"tol_{accuracy:.0e}"] = least.tolerance if least else math.nan
        row["best"] = min((distance for _, distance in reached), default=math.nan)
        row["ended"] = ended
        made.append(row)
    return made


def main() -> None:
    """Run all paths; --append keeps the rows of those not run now."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--only", nargs="*", default=[""], help="paths that begin so")
    parser.add_argument("--solvers", nargs="*", default=[], help="by name (default: all)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a solver")
    parser.add_argument("--runs", type=Path, help="folder that keeps all runs")
    parser.add_argument("--append", action="store_true", help="keep the other rows of the CSV")
    given = parser.parse_args()
    os.environ.update(ONE_THREAD)
    if given.runs is not None:
        given.runs.mkdir(parents=True, exist_ok=True)
    options = Options(given.smoke, given.repeats, given.out)
    problems = [p for p in (SMOKE if given.smoke else FULL) if p.name.startswith(tuple(given.only))]
    with Table("glm_paths", options) as table:
        table.note(limit_s=given.limit)
        kept = given.out / "glm_paths.csv" if given.append else None
        if kept and kept.exists():
            again = {problem.name for problem in problems}
            with kept.open(newline="") as text:
                table.rows += [r for r in csv.DictReader(text) if r["contest"] not in again]
        for problem in problems:
            for row in rows(problem, options.times(3), given.limit, given.solvers, given.runs):
                table.add(**row)


if __name__ == "__main__":
    main()
