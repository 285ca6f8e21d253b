"""Mutated files of every format: each is read right, or refused in one line.

    python -m tests.fuzz -n 10000                 so many in all, shared between the formats
    python -m tests.fuzz -n 100000 --ledger       goes on where the ledger ends, and adds to it

The ledger, ``benchmarks/results/mutated.csv``, has a line a format: files by what came of them.
"impolite" is a traceback, a hang, memory beyond 64 MB, or a message that is none; "crashed" is a
process that ended.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.campaign import campaign
from tests.fuzz.corpus import targets

LEDGER = Path(__file__).parents[2] / "benchmarks" / "results" / "mutated.csv"
FIELDS = ("format", "files", "read", "refused", "impolite", "crashed", "lost", "seconds")
#: Files of a format one after the other, so that a run can end at any time.
BLOCK = 500


def main() -> int:
    """Run; return 1 where a reader broke the rule."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("-n", type=int, default=10_000, help="mutated files in all")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="names of targets that contain this")
    parser.add_argument("--show", type=int, default=3, help="faults to show of each kind")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    names = [name for name in targets() if options.only in name]
    lines = held() if options.ledger else {}
    first = {name: int(lines.get(name, {}).get("files", 0)) + options.seed for name in names}
    total, ends = Counter[str](), time.monotonic() + options.seconds
    left = max(1, options.n // max(len(names), 1))
    while left > 0 and time.monotonic() < ends:
        for name in names:
            began, share = _spent(), min(BLOCK, left)
            counts, faults = campaign(name, share, first[name])
            first[name] += share
            total += counts
            told(name, faults, options.show)
            if options.ledger:
                add(lines, name, counts | Counter(files=share), _spent() - began)
        left -= BLOCK
        print(f"so far {dict(total)}", flush=True)
    return int(total["impolite"] + total["crashed"] > 0)


def _spent() -> float:
    """Return the processor time of the workers that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def told(name: str, faults: list[tuple[int, str, str]], show: int) -> None:
    """Print faults by kind, with some of their seeds."""
    kinds = Counter((where, what[:50]) for _, where, what in faults)
    for kind, count in kinds.most_common():
        seeds = [seed for seed, where, what in faults if (where, what[:50]) == kind]
        what = next(what for _, where, what in faults if (where, what[:50]) == kind)
        print(f"{name}: {count} x {kind[0]}: {what}  seeds {seeds[:show]}", flush=True)


def held() -> dict[str, dict[str, str]]:
    """Return the lines of the ledger by format."""
    if not LEDGER.exists():
        return {}
    with LEDGER.open(newline="") as stream:
        return {row["format"]: row for row in csv.DictReader(stream)}


def add(lines: dict[str, dict[str, str]], name: str, counts: Counter[str], seconds: float) -> None:
    """Add counts to the line of a format, and write all of them."""
    line = lines.setdefault(name, dict.fromkeys(FIELDS, "0") | {"format": name})
    for key in FIELDS[1:-1]:
        line[key] = str(int(line[key]) + counts[key])
    line["seconds"] = f"{float(line['seconds']) + seconds:.1f}"
    with LEDGER.open("w", newline="") as stream:
        out = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        out.writeheader()
        out.writerows(lines[key] for key in sorted(lines))


if __name__ == "__main__":
    sys.exit(main())
