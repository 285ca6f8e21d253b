"""Two source trees of this package on the same problems, in turns: is the second one slower?

python benchmarks/base_against_head.py BASE HEAD [--smoke] [--repeats N] [--only NAME ...] [--out F]

BASE and HEAD are checkouts, each with its own built kernels inside its ``src``: a tree without
them loads those of the environment, and both are timed with the same ones. Each problem lives in
two processes, one a tree, which take turns; a ratio is the median time of HEAD over that of BASE,
with the passes over the data. With --at-most R it ends with exit code 1 where both the
median and the best time of HEAD are more than R times those of BASE. Seconds are those of the
processor, all threads together, which other work on the machine changes least. The problems are
those of ``contest_problems.py`` of each tree.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from benchmarks.contest_problems import PROBLEMS  # noqa: E402


def serve(name: str, size: float) -> None:
    """Set a problem up, then answer each line of input with the seconds and passes of one run."""
    run = PROBLEMS[name](size)
    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.process_time()
        passes = run()
        print(json.dumps([time.process_time() - began, passes]), flush=True)


def compare(trees: list[Path], name: str, size: float, repeats: int) -> dict[str, Any]:
    """Return the row of one problem."""
    servers = []
    for tree in trees:
        # Else the finder of an editable install would answer for both trees.
        places = [str(tree.resolve() / "src"), str(ROOT / "tests/path_first")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
        # Each tree states the problems in its own words.
        script = str(tree.resolve() / "benchmarks" / Path(__file__).name)
        command = [sys.executable, script, "--serve", name, "--size", str(size)]
        servers.append(
            subprocess.Popen(
                command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
    for server in servers:
        assert server.stdout is not None
        if server.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{name}: a tree could not set the problem up")
    times: list[list[float]] = [[], []]
    passes = [0.0, 0.0]
    for turn in range(repeats):
        for which in ((0, 1), (1, 0))[turn % 2]:
            server = servers[which]
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write("\n")
            server.stdin.flush()
            seconds, passes[which] = json.loads(server.stdout.readline())
            times[which].append(seconds)
    for server in servers:
        server.communicate()
    base, head = (float(np.median(some)) for some in times)
    return {
        "problem": name,
        "base_s": round(base, 4),
        "head_s": round(head, 4),
        "ratio": round(head / base, 3),
        "best_ratio": round(min(times[1]) / min(times[0]), 3),
        "base_passes": round(passes[0], 2),
        "head_passes": round(passes[1], 2),
    }


def main() -> None:
    """Compare two trees, or serve one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--smoke", action="store_true", help="a twentieth of the sizes, one run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--at-most", type=float, help="the largest ratio that passes")
    parser.add_argument("--serve")
    parser.add_argument("--size", type=float, default=1.0)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.size)
        return
    if len(given.trees) != 2:
        parser.error("name two trees: BASE HEAD")
    size, repeats = (0.05, 1) if given.smoke else (given.size, given.repeats)
    rows = []
    for name in given.only:
        row = compare(given.trees, name, size, repeats)
        rows.append(row)
        print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
        if given.out:
            with given.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
                writer.writerows(rows)
    # Both, as a noisy machine spoils one or the other.
    slower = [
        row["problem"]
        for row in rows
        if given.at_most and min(row["ratio"], row["best_ratio"]) > given.at_most
    ]
    if slower:
        sys.exit(f"slower than {given.at_most:g} times the base: {', '.join(slower)}")


if __name__ == "__main__":
    main()
