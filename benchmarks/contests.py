"""Does a change cost more? Each headline of the scoreboard, small, in counts that are kept.

python -m benchmarks.contests [--only NAME ...] [--keep]

Counts are the same on any machine, but for a step more or less where rounding decides:

passes : readings of the data;
loss : calls of a loss for values, derivatives or its conjugate;
norm : calls of a norm for its polar, its best columns or a proximal map;
block : products with the columns in use, or their Gram matrix.

A question that is passed on within a part counts once. A count that is more than 15% above the one
that is kept, and more by ``FEW`` calls, ends with exit code 1, and so does a problem of which none
are kept. Time is that of the processor in units of one pass over the same data, the less of two
runs; machines differ in what a pass costs them, so half as much again is only said. ``--keep``
writes benchmarks/results/contests.csv, which belongs into the commit that changes what is counted
there, with the reason. Seconds of two trees side by side: ``base_against_head.py``.
"""

from __future__ import annotations

import argparse
import csv
import functools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.contest_problems import PROBLEMS
from benchmarks.harness.options import Options
from benchmarks.harness.table import Table

RESULTS = Path(__file__).resolve().parent / "results"
#: More than this of a count is too much, where it is more than ``FEW`` calls; of passes any.
MOST, FEW = 1.15, 10
#: More than this of a time is said.
SLOW = 1.5
#: The size of each problem at which it takes about a second, all counting included.
SIZES = {
    "certificate": 1.0,
    "paper_l": 0.1,
    "correlated": 0.2,
    "selection": 0.2,
    "lasso_dense": 0.1,
    "lasso_sparse": 0.1,
    "lasso_path": 0.2,
    "search_20": 0.25,
    "search_50": 0.25,
    "search_ksupport": 0.4,
    "pairs": 0.1,
    "groups": 0.1,
    "latent": 1.0,
    "paper_v": 1.0,
    "structured": 0.15,
    "implicit": 0.3,
    "completion": 0.1,
    "matrix_pursuit": 0.2,
    "sparse_pca": 0.2,
    "robust_pca": 0.3,
}
COUNTS = ("passes", "loss", "norm", "block")


class Counts:
    """How often the parts were asked, and the time that readings of the data took."""

    def __init__(self) -> None:
        self.calls = Counter[str]()
        self.readings = 0
        self.seconds = 0.0
        self._inside = Counter[str]()

    def watch(self) -> None:
        """Have every loss, norm, block and counted design that there is count its questions."""
        from atomlearn.core.data.wrappers import Counted
        from atomlearn.interfaces import Block, Loss, Norm

        asked = {
            "loss": (Loss, ("value", "gradient", "conjugate", "curvature")),
            "norm": (Norm, ("polar", "polar_bounds", "excess", "best_columns", "prox_point")),
            "block": (Block, ("dot", "transpose_dot", "scores", "gram")),
            "read": (Counted, ("scores", "scores_many", "scores_above")),
        }
        for what, (base, names) in asked.items():
            for kind in family(base):
                for name in set(names) & set(vars(kind)):
                    setattr(kind, name, self._counting(what, vars(kind)[name]))

    def _counting(self, what: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def counted(*given: Any, **named: Any) -> Any:
            outermost = not self._inside[what]
            self.calls[what] += outermost
            self._inside[what] += 1
            began = time.process_time() if what == "read" else 0.0
            try:
                return method(*given, **named)
            finally:
                self._inside[what] -= 1
                if what == "read" and outermost:
                    self.seconds += time.process_time() - began

        return counted


def family(kind: type) -> set[type]:
    """Return a class and all that derive from it."""
    return {kind}.union(*(family(each) for each in kind.__subclasses__()))


def measured(name: str, counts: Counts) -> dict[str, Any]:
    """Return the row of one problem."""
    run = PROBLEMS[name](SIZES[name.removesuffix("_noise")])
    run()
    times = []
    for _ in range(2):
        counts.calls.clear()
        counts.seconds, began = 0.0, time.process_time()
        passes = run()
        seconds = time.process_time() - began
        a_pass = counts.seconds / max(counts.calls["read"], 1)
        times.append(seconds / a_pass if a_pass else 0.0)
    found = {"passes": round(passes, 2)} | {what: counts.calls[what] for what in COUNTS[1:]}
    return {"problem": name, **found, "time_in_passes": round(min(times), 1)}


def faults(row: dict[str, Any], kept: dict[str, str] | None) -> Iterator[str]:
    """Yield what is too much about a row, beside the one that is kept."""
    if kept is None:
        yield f"{row['problem']}: no counts are kept; see --keep"
        return
    for what in COUNTS:
        before, few = float(kept[what]), 0 if what == "passes" else FEW
        if row[what] > max(round(MOST * before, 6), before + few):
            yield f"{row['problem']}: {what} {before:g} -> {row[what]:g}"


def main() -> None:
    """Count, compare with what is kept, or keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [name for name in PROBLEMS if name.removesuffix("_noise") in SIZES]
    parser.add_argument("--only", nargs="*", default=names, choices=names, metavar="NAME")
    parser.add_argument("--keep", action="store_true", help="write what is found as what is kept")
    given = parser.parse_args()
    path = RESULTS / "contests.csv"
    with path.open(newline="") as file:
        kept = {row["problem"]: row for row in csv.DictReader(file)}
    import atomlearn  # noqa: F401  (all parts, so that all are watched)

    counts = Counts()
    counts.watch()
    found: list[str] = []
    with Table("contests", Options(out=RESULTS if given.keep else None)) as table:
        table.note(kept_by="OMP_NUM_THREADS=1 python -m benchmarks.contests --keep")
        for name in names:
            if name not in given.only:
                if given.keep and name in kept:
                    table.add(**kept[name])
                continue
            row = measured(name, counts)
            table.add(**row)
            before = kept.get(name)
            found += faults(row, before)
            if before and row["time_in_passes"] > SLOW * float(before["time_in_passes"]):
                print(f"  slower, perhaps: {before['time_in_passes']} passes before")
    if found and not given.keep:
        sys.exit("more than was kept:\n" + "\n".join(found))


if __name__ == "__main__":
    main()
