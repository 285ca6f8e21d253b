"""Random problems of every kind: is any certificate wrong?

A gap says that no point has an objective below ``objective - gap``. Objectives are computed afresh
in long double, by formulas of ``drawn.py``, and bounded from below by ``bounds.py``, where nothing
of a solver takes part. Where the bound at the point itself is within the gap, the gap is proved.
Where it is not, the problem is solved again, tightly: the bound at that point proves the gap, or
that point refutes it. What is neither (losses with kinks, kinds of ``further.py``: matrices,
survival, products, stores, free columns, own norms) counts as held against a tight solution.

    python -m benchmarks.certificate.campaign --problems 30000 --seed 0 --ledger
    python -m benchmarks.certificate.campaign --seconds 600 --seed 1000000
    python -m benchmarks.certificate.campaign --tell

``--ledger`` goes on behind the last seed of ``benchmarks/results/campaign.csv``, which gets a line
for every 1,000 problems: what was proved, statuses (perfect fits among the others), what was slow.
What was at fault stands in ``campaign_faults.csv``, with what became of it (``--again`` tries all
of them anew), counts and times of each kind in ``campaign_kinds.csv``. All times are of the
processor, limits included, so that a busy machine changes no figure. (``slow`` of the first 100,000
was counted with a clock of 4 ms, which took what was shorter for nothing: it is 40 too many in
each thousand; the column ``spent`` of the kinds begins behind it.)
"""

from __future__ import annotations

import argparse
import csv
import signal
import sys
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certificate.drawn import LIMIT, Task, draw
from benchmarks.certificate.further import draw_further
from benchmarks.certificate.later import FIRST, draw_later

HANG = 30
#: One seed in so many is of the further kinds.
FURTHER = 16
BLOCK = 1000
RESULTS = Path(__file__).parents[1] / "results"
#: How a gap was found to be true, or not.
VERDICTS = ("proved", "proved_by_twin", "not_refuted", "wrong", "failed")
STATUSES = ("CONVERGED", "STALLED", "TIME_LIMIT", "MAX_ITER", "others")
FIELDS = ("first", "problems", *VERDICTS, *STATUSES, "late", "slow", "seconds", "worst_excess")
FAULT = ("seed", "kind", "what", "now")
KIND = ("loss", "norm", "form")


class Hang(BaseException):
    """A solve that no time limit ends."""


def judge(task: Task, rng: np.random.Generator) -> dict[str, Any]:
    """Solve a problem; return the verdict on its gap, and what else there is to tell."""
    asked = float(10.0 ** -rng.integers(2, 10))
    result, seconds = _timed(task, asked)
    value, bound = task.judged(result)
    if np.isnan(value):
        return _row(result, seconds, "wrong", "outside of the ball")
    # The long double itself rounds, in units of what cancels in the predictions and losses.
    noise = (1e-15 + task.slack) * float(abs(value)) + task.cancels() + 5e-324
    off = float(value) - result.objective
    slack = (1e-9 + task.slack) * abs(result.objective) + task.cancels() + 1e-300
    if off > result.gap + slack:
        what = f"objective {result.objective!r}, is {float(value)!r}"
        return _row(result, seconds, "wrong", what)
    if bound <= result.gap * (1 + 1e-9) + noise:
        return _row(result, seconds, "proved")
    verdict, excess, least = "not_refuted", 0.0, value
    rivals = [] if task.rival is None or (found := task.rival()) is None else [found]
    twins = (lambda tight=tight: task.run(tight) for tight in (1e-9, 1e-12))
    for twin in (*rivals, *(make() for make in twins)):
        other, further = task.judged(twin)
        if not np.isnan(other):
            least = min(least, other)
            if value - (other - further) <= result.gap * (1 + 1e-9) + noise:
                verdict = "proved_by_twin"
        excess = float(value - least) / max(result.gap, 5e-324)
        if float(value - least) > result.gap + noise:
            what = (f"excess {float(value - least):.3g} > gap {result.gap:.3g} of "
                    f"{result.objective:.6g} ({result.status.name})")  # fmt: skip
            return _row(result, seconds, "wrong", what, excess)
        if verdict == "proved_by_twin" or np.isinf(further):
            break
    return _row(result, seconds, verdict, excess=excess)


def _timed(task: Task, gap: float) -> tuple[Any, float]:
    began = time.process_time()
    result = task.run(gap)
    return result, time.process_time() - began


def _row(result: Any, seconds: float, verdict: str, what: str = "", excess: float = 0.0) -> Any:
    late = seconds > 1.05 * LIMIT + 0.2
    what = what or (f"late: {seconds:.2f} s with a limit of {LIMIT} s" if late else "")
    status = result.status.name if result.status.name in STATUSES else "others"
    return {"status": status, "seconds": seconds, "verdict": verdict, "late": late, "what": what,
            "excess": excess}  # fmt: skip


def solved(seed: int) -> dict[str, Any]:
    """Solve the problem of a seed; return what there is to tell of it."""
    kind: tuple[str, ...] = ("unknown",) * 4
    hangs = time.process_time() + HANG

    def ring(*_: object) -> None:
        # A timer of the processor's time would make that clock as coarse as the kernel's ticks,
        # 4 ms, which is more than most problems take.
        if time.process_time() > hangs:
            raise Hang
        signal.setitimer(signal.ITIMER_REAL, HANG)

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        later = seed >= FIRST and seed % FURTHER < FURTHER // 2
        drawn = draw_further if seed % FURTHER == FURTHER - 1 else draw
        task = draw_later(seed) if later else drawn(seed)
        kind = task.kind
        row = judge(task, np.random.default_rng([8, seed]))
    except Hang:
        row = {"verdict": "failed", "what": f"hang: over {HANG} s"}
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        row = {"verdict": "failed", "what": what[:200]}
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"seed": seed, "kind": kind, "status": "others", "seconds": 0.0, "late": False} | row


def told(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the line of the ledger for these problems."""
    counts = Counter(row["verdict"] for row in rows) + Counter(row["status"] for row in rows)
    line: dict[str, Any] = {"first": rows[0]["seed"], "problems": len(rows)}
    line |= {name: counts[name] for name in (*VERDICTS, *STATUSES)}
    line["late"] = sum(row["late"] for row in rows)
    # Of the kind: loss and norm; those of fewer than ten problems here are told by the kinds' file.
    times: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in rows:
        times[row["kind"][:2]].append(row["seconds"])
    line["slow"] = sum(
        one > 10 * float(np.median(found)) for found in times.values() if len(found) > 9
        for one in found
    )  # fmt: skip
    line["seconds"] = round(sum(row["seconds"] for row in rows), 1)
    line["worst_excess"] = f"{max(row.get('excess', 0.0) for row in rows):.3g}"
    return line


class Ledger:
    """The files of counts: a line a block of seeds, the faults, and the kinds."""

    def __init__(self, folder: Path) -> None:
        self.blocks, self.faults = folder / "campaign.csv", folder / "campaign_faults.csv"
        self.kinds = folder / "campaign_kinds.csv"

    def next_seed(self, first: int) -> int:
        """Return the seed behind the last block that begins at ``first`` or later."""
        ends = [int(row["first"]) + int(row["problems"]) for row in _read(self.blocks)]
        return max([first, *ends])

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Write what a block of seeds gave."""
        faults = [
            {"seed": row["seed"], "kind": "/".join(row["kind"]), "what": row["what"], "now": ""}
            for row in rows if row["what"]
        ]  # fmt: skip
        _append(self.faults, FAULT, faults)
        self._add_kinds(rows)
        _append(self.blocks, FIELDS, [told(rows)])

    def _add_kinds(self, rows: list[dict[str, Any]]) -> None:
        """Add to the counts of each kind: its problems, and seconds in powers of two."""
        known = {tuple(row[name] for name in KIND): row for row in _read(self.kinds)}
        for row in rows:
            kind = tuple(row["kind"][:3])
            held = known.setdefault(kind, dict(zip(KIND, kind, strict=True)))
            for name in ("problems", row["verdict"], row["status"]):
                held[name] = int(held.get(name) or 0) + 1
            bins = Counter(_bins(held.get("spent") or ""))
            bins[int(np.floor(np.log2(max(row["seconds"], 1e-4))))] += 1
            held["spent"] = " ".join(f"{e}:{n}" for e, n in sorted(bins.items()))
        fields = (*KIND, "problems", *VERDICTS, *STATUSES, "spent")
        lines = [{name: known[kind].get(name) or 0 for name in fields} for kind in sorted(known)]
        self.kinds.unlink(missing_ok=True)
        _append(self.kinds, fields, lines)

    def again(self) -> None:
        """Try what was at fault anew, and write what it is now."""
        rows = _read(self.faults)
        for row in rows:
            found = solved(int(row["seed"]))
            row["now"] = found["what"] or f"{found['verdict']}, {found['status']}"
        self.faults.unlink(missing_ok=True)
        _append(self.faults, FAULT, rows)

    def tell(self) -> int:
        """Print the sums; return how many certificates were wrong, or solves failed."""
        total: Counter[str] = Counter()
        for row in _read(self.blocks):
            total.update({name: int(row[name]) for name in FIELDS[1:-2]})
        print("as first run:", dict(total))
        for row in _read(self.faults):
            print("fault:", *row.values(), sep=" | ")
        open_ends: Counter[str] = Counter()
        far: Counter[str] = Counter()
        for row in _read(self.kinds):
            name = f"{row['loss']}/{row['norm']}"
            open_ends[name] += int(row["problems"]) - int(row["CONVERGED"])
            far[name] += _beyond(row.get("spent") or "")
        print("no proof in time:", dict(open_ends.most_common(20)))
        print(f"over ten times the median of their kind: {far.total()}", dict(far.most_common(20)))
        return total["wrong"] + total["failed"]


def _beyond(times: str) -> int:
    """Return how many of these are in bins wholly above ten times the median."""
    bins = _bins(times)
    flat = np.repeat(list(bins), list(bins.values()))
    if not flat.size:
        return 0
    # The median lies below the upper end of its bin; three bins further is over eight times that.
    return int((flat >= np.median(flat) + 1 + np.log2(10)).sum())


def _bins(times: str) -> dict[int, int]:
    parts = (part.split(":") for part in times.split() if ":" in part)
    return {int(exponent): int(count) for exponent, count in parts}


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def _append(path: Path, fields: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    begins = not path.exists()
    with path.open("a", newline="") as stream:
        out = csv.DictWriter(stream, fields, lineterminator="\n")
        if begins:
            out.writeheader()
        out.writerows(rows)


def main() -> int:
    """Run; return 1 where a certificate was wrong or an exception was raised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--problems", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ledger", action="store_true", help="go on there, and add to it")
    parser.add_argument("--again", action="store_true", help="try the faults of the ledger anew")
    parser.add_argument("--tell", action="store_true", help="only tell what the ledger has")
    options = parser.parse_args()
    ledger = Ledger(RESULTS)
    if options.tell:
        return int(ledger.tell() > 0)
    warnings.simplefilter("ignore")
    if options.again:
        time.monotonic = time.process_time
        ledger.again()
        return 0

    ends, time.monotonic = time.perf_counter() + options.seconds, time.process_time
    first = ledger.next_seed(options.seed) if options.ledger else options.seed
    last, bad, seed = first + options.problems, 0, first
    while seed < last and time.perf_counter() < ends:
        rows: list[dict[str, Any]] = []
        while seed < last and time.perf_counter() < ends and len(rows) < BLOCK:
            rows.append(solved(seed))
            seed += 1
            if rows[-1]["what"]:
                print(seed - 1, "/".join(rows[-1]["kind"]), rows[-1]["what"], flush=True)
        bad += sum(row["verdict"] in ("wrong", "failed") for row in rows)
        print(told(rows), flush=True)
        if options.ledger:
            ledger.add(rows)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
