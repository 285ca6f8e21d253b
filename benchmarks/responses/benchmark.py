"""Counts, labels, classes and times to an event with l1: ours against six packages.

Dense: n = 1000, p = 100,000, AR(0.5) columns; sparse: n = 20,000, p = 500,000, like text. Each
solver has a process of its own, in which it is run over its tolerances from loose to tight until
the objective, computed by one plain function for all, is within 1e-6 (relative) of the best that is
known, and then again at that tolerance; times are medians of those runs, and processor seconds (of
all threads) for machines that others use. The reference is ours to a proved gap of 1e-9. A solver
is given up after --limit seconds.

    python -m benchmarks.responses.benchmark [--only "cox dense"] [--limit 60] [--out FOLDER]

With --from FILE, a table of before, each search begins at the tolerance that was found there, and
what found none is not tried again: its row says so. Little but the timed runs is left then, which
a machine that must be quiet has time for.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from benchmarks.harness.contest import ACCURACY, Bench, Rival
from benchmarks.harness.options import add_options
from benchmarks.harness.worker import TimeLimit, Worker
from benchmarks.responses.problems import FULL, SMOKE, Problem
from benchmarks.responses.solvers import SOLVERS


def former_rows(path: Path | None) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of a table of before, by problem and solver."""
    if path is None:
        return {}
    with path.open(newline="") as file:
        return {(row["problem"], row["solver"]): row for row in csv.DictReader(file)}


def compared(
    problem: Problem,
    solver: type[Rival],
    reference: float,
    repeats: int,
    limit: float,
    loosest: float = math.inf,
) -> dict[str, Any]:
    """Return the row of one solver: the loosest tolerance that is accurate, and its times."""
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    row: dict[str, Any] = {"solver": solver.name, "tolerance": math.nan, "seconds": math.nan}
    row["limit_s"] = limit
    until, last, ended = time.monotonic() + limit, math.nan, ""
    with Worker(Bench, problem, solver, threads) as worker:
        for tolerance in (t for t in solver.tolerances if t <= loosest):
            left = until - time.monotonic()
            try:
                fit = worker.call("fit", tolerance, limit_s=max(left, 0.1))
            except TimeLimit:
                ended = f"tol {tolerance:g}: cut, {limit:g} s for all tolerances were over"
                break
            except RuntimeError as error:
                ended = f"tol {tolerance:g}: {str(error).strip().splitlines()[-1]}"
                break
            last = (fit.objective - reference) / abs(reference)
            if last <= ACCURACY:
                runs = [worker.call("fit", tolerance) for _ in range(repeats)]
                row["tolerance"] = tolerance
                row["seconds"] = float(np.median([run.seconds for run in runs]))
                row["processor_s"] = float(np.median([run.processor for run in runs]))
                row["most_s"] = max(run.seconds for run in runs)
                row["selected"] = fit.selected
                row["peak_gb"] = worker.peak() / 1e9
                break
    return row | {"suboptimality": last, "ended": ended}


def main() -> None:
    """All problems, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--only", default="", help="problems whose name begins so")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a solver's search")
    parser.add_argument("--from", dest="former", type=Path, help="a table that knows tolerances")
    given = parser.parse_args()
    former = former_rows(given.former)
    options = Options(given.smoke, given.repeats, given.out)
    problems = [p for p in (SMOKE if given.smoke else FULL) if str(p).startswith(given.only)]
    missing = sorted({s.package for s in SOLVERS if not s.is_installed()})
    with Table("responses", options) as table:
        table.note(not_installed=missing or "none", limit_s=given.limit)
        for problem in problems:
            solvers = [s for s in SOLVERS if problem.loss in s.losses and s.is_installed()]
            with Worker(Bench, problem, solvers[0], os.cpu_count() or 1) as worker:
                reference = worker.call("fit", 1e-9).objective
            for solver in solvers:
                known = former.get((str(problem), solver.name), {"tolerance": "inf"})
                if not known["tolerance"]:
                    table.add(**{**known, "ended": "before: " + known["ended"]})
                    continue
                loosest = 1.1 * float(known["tolerance"])
                row = compared(problem, solver, reference, options.times(3), given.limit, loosest)
                table.add(problem=str(problem), **row)


if __name__ == "__main__":
    main()
