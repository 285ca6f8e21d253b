"""Faults of every kind, many times each; what they led to is kept as a ledger.

    python -m tests.nightly --count 100 --out build/nightly.csv

Ends with 1 where anything was lost, half of a file accepted, or a file of the user's deleted.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.fuzz import kills
from tests.nightly import edges, inputs, places, selections
from tests.nightly.ledger import Row, written


def _kills(fault: str, says: str, kind: Callable[[int, int], dict[str, int]]) -> Callable:
    """Return a kind of kills of ``tests.fuzz.kills``, which raises where something is lost."""

    def tried(count: int, seed: int) -> Row:
        done = kind(count, seed)["killed"]
        return Row(fault, done, done, says)

    return tried


def _on_a_small_disk(kind: str) -> Callable[[int, int], list[Row]]:
    def tried(count: int, seed: int) -> list[Row]:
        alone = ["unshare", "-rm"]
        mounts = shutil.which("unshare") and not subprocess.run([*alone, "true"]).returncode
        if not mounts:
            return places.full(count, seed, mounted=False) if kind == "full" else []
        words = [*alone, sys.executable, "-m", "tests.nightly.places", kind, str(count), str(seed)]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        return [Row(**row) for row in json.loads(done.stdout)]

    return tried


def _of_workers(kind: str) -> Callable[[int, int], list[Row]]:
    """Return a kind of ``tests.nightly.workers``, which needs Dask."""

    def tried(count: int, seed: int) -> list[Row]:
        from tests.nightly import workers

        return workers.killed(count, seed) if kind == "killed" else [workers.all_gone(count, seed)]

    return tried


#: Each kind of fault: (count, seed) -> its row, or rows.
KINDS: dict[str, Callable] = {
    "conversions": _kills(
        "conversion killed", "(nothing: the same command goes on)", kills.conversions
    ),
    "checkpoints": _kills(
        "checkpointed solve killed", "(nothing: the same solve goes on)", kills.solves
    ),
    "selections": selections.killed,
    "workers": _of_workers("killed"),
    "no_workers": _of_workers("all gone"),
    "two_selections": selections.two_selections,
    "two_conversions": selections.two_conversions,
    "two_checkpoints": selections.two_checkpoints,
    "full_disk": _on_a_small_disk("full"),
    "read_only": _on_a_small_disk("read_only"),
    "occupied": inputs.occupied,
    "changing": inputs.changing,
    "no_files": inputs.no_files,
    "lines_in_names": inputs.lines_in_names,
    "odd_data": inputs.odd_data,
    **{size.__name__: lambda count, seed, size=size: edges.tried(size) for size in edges.SIZES},
}


def main() -> int:
    """Try the kinds that are asked for, all by default; write the ledger after each."""
    parser = argparse.ArgumentParser(prog="python -m tests.nightly", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build", "nightly.csv"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = list[Row]()
    for kind in options.kinds or KINDS:
        began = time.perf_counter()
        try:
            found = KINDS[kind](options.count, options.seed)
        except Exception as error:
            traceback.print_exc()
            found = Row(kind, 1, 0, f"{type(error).__name__}: {error}")
        rows += found if isinstance(found, list) else [found]
        written(rows, options.out)
        print(f"{kind}: {time.perf_counter() - began:.0f} s", flush=True)
    for row in rows:
        print(f"{row.ended_well:4d} of {row.tried:4d}  {row.fault}: {row.says}")
    return int(any(row.ended_well < row.tried for row in rows))


if __name__ == "__main__":
    sys.exit(main())
