"""Random problems of every kind, each solved twice or more: does any point refute a certificate?

A gap says that no point has an objective below ``objective - gap``. Every further solve of the same
problem, tighter or by another solver, gives a point to refute it with: both objectives are computed
afresh, in long double, by formulas of ``drawn.py``. So a wrong certificate is found as soon as any
solver finds a better point, whoever is right about its own gap. One problem in four is of the
kinds of ``further.py``: matrices, survival, products, stores, free columns, own norms.

    python -m benchmarks.certificate.campaign --seconds 600 --seed 0 --lines campaign.jsonl
    python -m benchmarks.certificate.campaign --tell campaign.jsonl

Counted are wrong certificates, objectives that are not those of the point, exceptions, statuses,
and solves that took over ten times the median of their kind (and over a second). With ``--lines``
each problem is a line of the file, and a run goes on where the last one ended. All times are of
the processor, limits included, so that a busy machine changes no figure.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn import solvers
from benchmarks.certificate.drawn import LIMIT, Task, draw
from benchmarks.certificate.further import draw_further

HANG = 30
#: What a problem of the wide kinds is, among all seeds.
FURTHER = 4


class Hang(BaseException):
    """A solve that no time limit ends."""


def judge(task: Task, rng: np.random.Generator) -> tuple[list[str], list[Any], list[float]]:
    """Return what is wrong, the results and the seconds of each."""
    # What smoothing of a loss with kinks gives in a second.
    tight = 1e-7 if task.kind[0] == "quantile" else 1e-9
    plans: list[tuple[float, Any]] = [(float(10.0 ** -rng.integers(2, 7)), None), (tight, None)]
    if rng.random() < 0.15:
        plans.append((1e-8, solvers.AtomGeneration()))
    results, seconds, wrong = [], [], []
    for gap, solver in plans:
        began = time.process_time()
        results.append(task.run(gap, solver))
        seconds.append(time.process_time() - began)
    values = [task.objective(result) for result in results]
    best = np.nanmin(values) if not np.isnan(values).all() else np.longdouble("nan")
    for place, (result, value) in enumerate(zip(results, values, strict=True)):
        if np.isnan(value):
            wrong.append(f"solve {place}: outside of the ball")
            continue
        # The long double itself rounds, in units of what cancels in the predictions.
        noise = (1e-15 + task.slack) * float(abs(value)) + 5e-324
        if float(value - best) > result.gap + noise:
            wrong.append(f"solve {place}: excess {float(value - best):.3g} > gap {result.gap:.3g} "
                         f"of {result.objective:.6g} ({result.status.name})")  # fmt: skip
        off = float(value) - result.objective
        if off > result.gap + (1e-9 + task.slack) * abs(result.objective) and abs(off) > 1e-300:
            wrong.append(f"solve {place}: objective {result.objective!r}, is {float(value)!r}")
    return wrong, results, seconds


def solved(seed: int) -> dict[str, Any]:
    """Solve the problem of a seed; return what there is to tell of it."""
    row: dict[str, Any] = {"seed": seed}
    signal.setitimer(signal.ITIMER_PROF, HANG)
    try:
        task = draw_further(seed) if seed % FURTHER == FURTHER - 1 else draw(seed)
        row["kind"] = task.kind
        wrong, results, seconds = judge(task, np.random.default_rng([8, seed]))
    except Hang:
        wrong, results, seconds = [f"hang: over {HANG} s"], [], []
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        wrong, results, seconds = [what[:200]], [], []
    signal.setitimer(signal.ITIMER_PROF, 0)
    late = [f"late: {one:.1f} s with a limit of {LIMIT} s" for one in seconds
            if one > 1.05 * LIMIT + 0.2]  # fmt: skip
    return row | {
        "status": [result.status.name for result in results],
        "gap": [float(f"{result.relative_gap:.3g}") for result in results],
        "seconds": [round(one, 4) for one in seconds],
        "faults": wrong + late,
    }


def tell(rows: list[dict[str, Any]]) -> int:
    """Print counts, what is slow for its kind, and what did not converge; return the faults."""
    counts: Counter[str] = Counter(problems=len(rows))
    times: dict[tuple[str, ...], list[tuple[float, int]]] = defaultdict(list)
    open_ends: Counter[str] = Counter()
    for row in rows:
        counts["at fault"] += bool(row["faults"])
        counts.update(row["status"])
        counts["asked"] += len(row["status"])
        for place, (status, spent) in enumerate(zip(row["status"], row["seconds"], strict=True)):
            times[*row["kind"], str(place)].append((spent, row["seed"]))
            if status != "CONVERGED":
                open_ends[f"{status} {row['kind'][0]}/{row['kind'][1]}"] += 1
    slow = [
        (kind, spent, seed)
        for kind, found in times.items()
        for spent, seed in found
        if spent > max(1.0, 10 * float(np.median([one for one, _ in found])))
    ]
    for kind, spent, seed in sorted(slow, key=lambda item: -item[1])[:40]:
        print(f"slow: {spent:.1f} s, seed {seed}, {'/'.join(kind)}")
    print("no proof:", dict(open_ends.most_common(40)))
    print({**counts, "slow": len(slow)})
    return counts["at fault"]


def main() -> int:
    """Run; return 1 where a certificate was wrong or an exception was raised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--problems", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=Path, help="add each problem to this file, and go on there")
    parser.add_argument("--tell", type=Path, help="only tell what stands in a file")
    options = parser.parse_args()
    if options.tell is not None:
        return int(tell(_read(options.tell)) > 0)
    warnings.simplefilter("ignore")

    def ring(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGPROF, ring)
    ends, time.monotonic = time.perf_counter() + options.seconds, time.process_time
    rows = [] if options.lines is None else _read(options.lines)
    first = max((row["seed"] + 1 for row in rows), default=options.seed)
    for seed in range(first, options.seed + options.problems):
        if time.perf_counter() > ends:
            break
        rows.append(solved(seed))
        if rows[-1]["faults"]:
            print(json.dumps(rows[-1]), flush=True)
        if options.lines is not None:
            with options.lines.open("a") as stream:
                stream.write(json.dumps(rows[-1]) + "\n")
    return int(tell(rows) > 0)


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


if __name__ == "__main__":
    sys.exit(main())
