"""Where the time of ours goes in the contests of ``benchmark.py``: what the page says of losses.

    python -m benchmarks.accuracies.parts [--only "lasso"]

One solve to 1e-6 by column generation, seven times after a first one: the seconds of asking the
data (readings, certificates, candidates), of gathering columns, of re-fits, and the rest (checks,
conversions, the largest level); medians, written to ``benchmarks/results/parts.csv``.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atomlearn.core.solvers.column_generation as module
from benchmarks.accuracies.benchmark import contests

PARTS = ("reading", "gathering", "refits")
OUT = Path(__file__).resolve().parents[1] / "results" / "parts.csv"

spent: dict[str, float] = defaultdict(float)


def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, with its seconds added to a part; what it calls counts once."""

    def call(*given: Any, **named: Any) -> Any:
        began, inside = time.perf_counter(), sum(spent.values())
        try:
            return function(*given, **named)
        finally:
            lasted = time.perf_counter() - began
            spent[part] += lasted - (sum(spent.values()) - inside)

    return call


def main() -> None:
    """Solve each contest, and write a line of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[""], help="contests that begin so")
    only = tuple(parser.parse_args().only)
    generation = module.ColumnGeneration
    for part, name in (("reading", "_price"), ("refits", "_refit"), ("refits", "_all_at_once")):
        setattr(generation, name, timed(part, getattr(generation, name)))
    module.centered_columns = timed("gathering", module.centered_columns)  # type: ignore[assignment]
    with OUT.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["contest", "seconds", *PARTS, "rest", "passes", "selected"])
        for name, problem, solvers in contests(1.0):
            if name.startswith(only):
                table.writerow([name, *line(problem, solvers[0])])
                file.flush()


def line(problem: Any, ours: Any) -> list[Any]:
    """Return seconds, seconds of each part and of the rest, passes, and columns in use."""
    X, y, level = problem.data()
    solver = ours(problem, X, y, level, 2)
    coef = solver.fit(1e-6)
    runs = []
    for _ in range(7):
        spent.clear()
        began = time.perf_counter()
        solver.fit(1e-6)
        total = time.perf_counter() - began
        runs.append([total, *(spent[part] for part in PARTS), total - sum(spent.values())])
    medians = [statistics.median(column) for column in zip(*runs, strict=True)]
    return [*(f"{value:.4f}" for value in medians), solver.passes, int((coef != 0).sum())]


if __name__ == "__main__":
    main()
