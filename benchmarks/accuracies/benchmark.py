"""Time to 1e-3, 1e-6 and 1e-9 of the optimum: sixteen problems, ours against ten packages.

Each solver has a process of its own with its own copy of the data. After a first call (imports and
compilation) it is run over its tolerances, from loose to tight, three times each where a run is
short; its time to an accuracy is the least of all runs whose objective, computed by one plain
function for all, is within it, relative to the best that is known. So every peer stands at its best
setting for each accuracy. Ours is asked to prove its gap. The reference is ours at a proved gap of
1e-11, or better where someone found it. A solver is cut --limit seconds after its first call.

    python -m benchmarks.accuracies.benchmark [--only "lasso"] [--limit 12] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from typing import Any

from benchmarks.accuracies.problems import Problem
from benchmarks.accuracies.solvers import SOLVERS
from benchmarks.groups.problems import GroupProblem
from benchmarks.groups.solvers import SOLVERS as GROUP_SOLVERS
from benchmarks.harness import Options, Table
from benchmarks.harness.contest import Bench, Fit, Rival
from benchmarks.harness.options import add_options
from benchmarks.harness.worker import TimeLimit, Worker
from benchmarks.lasso.problems import Problem as Lasso
from benchmarks.lasso.solvers import SOLVERS as LASSO_SOLVERS
from benchmarks.responses.problems import Problem as Response
from benchmarks.responses.solvers import SOLVERS as RESPONSE_SOLVERS

ACCURACIES = (1e-3, 1e-6, 1e-9)
#: Shorter runs than this are repeated; the first call may take so long.
SHORT_S, FIRST_S = 1.0, 60.0
OURS = "atomlearn"

Contest = tuple[str, Any, tuple[type[Rival], ...]]


def contests(size: float) -> list[Contest]:
    """Return the name, the problem and the solvers of each; size scales the columns."""

    def columns(full: int) -> int:
        return max(int(full * size) // 10 * 10, 200)

    lasso, groups, responses = LASSO_SOLVERS, GROUP_SOLVERS, RESPONSE_SOLVERS
    dense, text = (500, columns(20_000)), (5000, columns(100_000))
    return [
        ("lasso, dense, 0.1", Lasso("squared", "dense", *dense, 0.1), lasso),
        ("lasso, dense, 0.02", Lasso("squared", "dense", *dense, 0.02), lasso),
        ("lasso, sparse, 0.05", Lasso("squared", "sparse", *text, 0.05), lasso),
        ("logistic, dense, 0.1", Lasso("logistic", "dense", *dense, 0.1), lasso),
        ("logistic, sparse, 0.05", Lasso("logistic", "sparse", *text, 0.05), lasso),
        ("groups, few samples, 0.05", GroupProblem("figure2", 200, 1000, 0.05), groups),
        ("groups, 0.1", GroupProblem("large", 500, columns(20_000), 0.1), groups),
        ("overlapping chains, 0.05", GroupProblem("chains", 300, 1000, 0.05), groups),
        ("Poisson, dense, 0.1", Response("poisson", "dense", *dense, 0.1), responses),
        ("Cox, dense, 0.1", Response("cox", "dense", *dense, 0.1), responses),
        ("multinomial, dense, 0.1", Response("multinomial", "dense", *dense, 0.1), responses),
        ("elastic net, dense, 0.1", Problem("elastic net", *dense, 0.1), SOLVERS),
        ("nonnegative lasso, 0.1", Problem("nonnegative lasso", 300, columns(5000), 0.1), SOLVERS),
        ("squared hinge, 0.1", Problem("squared hinge", *dense, 0.1), SOLVERS),
        ("Huber, 0.1", Problem("Huber", 300, columns(5000), 0.1), SOLVERS),
        ("quantile, 0.1", Problem("quantile", 200, columns(2000), 0.1), SOLVERS),
        ("k-support, squared, 0.1", Problem("k-support", *dense, 0.1), SOLVERS),
    ]


def runs_of(problem: Any, solver: type[Rival], reference: float, limit: float) -> dict[str, Any]:
    """Return what one solver did: all its fits, its peak of memory, and why it ended."""
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    tolerances = ACCURACIES if solver.name == OURS else solver.tolerances
    fits: list[Fit] = []
    told: dict[str, Any] = {"fits": fits, "peak_gb": math.nan, "first_s": math.nan, "ended": ""}
    with Worker(Bench, problem, solver, threads) as worker:
        tolerance = tolerances[0]
        try:
            # Not the loosest: some return at once, and compile the rest at the next call.
            first = tolerances[min(3, len(tolerances) - 1)]
            told["first_s"] = worker.call("fit", first, limit_s=FIRST_S).seconds
            until = time.monotonic() + limit
            for tolerance in tolerances:
                for _ in range(3):
                    left = max(until - time.monotonic(), 0.1)
                    fits.append(worker.call("fit", tolerance, limit_s=left))
                    if fits[-1].seconds > SHORT_S:
                        break
                told["peak_gb"] = worker.peak() / 1e9
                if solver.name != OURS and within(fits, reference, ACCURACIES[-1]) is not None:
                    break
        except TimeLimit:
            told["ended"] = f"cut at tol {tolerance:g}"
        except RuntimeError as error:
            told["ended"] = f"tol {tolerance:g}: {str(error).strip().splitlines()[-1]}"
    return told


def within(fits: list[Fit], reference: float, accuracy: float) -> Fit | None:
    """Return the soonest fit that is within the accuracy, None where none was."""
    least = min(reference, min((fit.objective for fit in fits), default=reference))
    good = [fit for fit in fits if fit.objective - least <= accuracy * abs(least)]
    return min(good, key=lambda fit: fit.seconds, default=None)


def rows(contest: Contest, limit: float) -> list[dict[str, Any]]:
    """Run one contest; return a row for each solver, ours first."""
    name, problem, solvers = contest
    taking_part = [
        s for s in solvers
        if problem.loss in s.losses and s.is_installed() and "proved" not in s.name
    ]  # fmt: skip
    with Worker(Bench, problem, taking_part[0], os.cpu_count() or 1) as worker:
        reading = worker.call("reading")
        reference = worker.call("fit", 1e-11).objective
    told = {s.name: runs_of(problem, s, reference, limit) for s in taking_part}
    reference = min([reference, *(f.objective for t in told.values() for f in t["fits"])])
    made = []
    for solver, what in told.items():
        found = [within(what["fits"], reference, accuracy) for accuracy in ACCURACIES]
        best = min((fit.objective for fit in what["fits"]), default=math.nan)
        row: dict[str, Any] = {"contest": name, "solver": solver}
        for accuracy, fit in zip(ACCURACIES, found, strict=True):
            row[f"s_to_{accuracy:.0e}"] = fit.seconds if fit else math.nan
            row[f"passes_to_{accuracy:.0e}"] = fit.passes if fit else math.nan
        made.append(
            row | {
                "first_s": what["first_s"], "best": (best - reference) / abs(reference),
                "peak_gb": what["peak_gb"], "reading_s": reading, "ended": what["ended"],
            }
        )  # fmt: skip
    return made


def main() -> None:
    """All contests, one after the other; --append keeps the rows of contests not run now."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--only", nargs="*", default=[""], help="contests that begin so")
    parser.add_argument("--limit", type=float, default=12.0, help="seconds of a solver")
    parser.add_argument("--append", action="store_true", help="keep the other rows of the CSV")
    given = parser.parse_args()
    chosen = [
        c for c in contests(0.05 if given.smoke else 1.0) if c[0].startswith(tuple(given.only))
    ]
    with Table("accuracies", Options(given.smoke, given.repeats, given.out)) as table:
        table.note(limit_s=given.limit)
        kept = given.out / "accuracies.csv" if given.append else None
        if kept and kept.exists():
            again = {name for name, _, _ in chosen}
            with kept.open(newline="") as text:
                table.rows += [r for r in csv.DictReader(text) if r["contest"] not in again]
        for contest in chosen:
            for row in rows(contest, given.limit):
                table.add(**row)


if __name__ == "__main__":
    main()
