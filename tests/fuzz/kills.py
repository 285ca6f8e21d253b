"""Processes ended at random moments: conversions, checkpointed solves, Ctrl-C.

    python -m tests.fuzz.kills --conversions 500 --solves 500 --interrupts 200

A conversion or a solve that was killed is begun again until it ends by itself: then the store is
the source, entry by entry, and the answer that of an undisturbed solve. A solve that is
interrupted gives a point whose objective is its own and whose gap no better point refutes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from atomlearn import norms, solvers
from atomlearn.datasets import convert
from atomlearn.designs import OnDisk
from atomlearn.result import Result
from tests.oracles.sums import solve_sum

_RNG = np.random.default_rng(0)
X = _RNG.standard_normal((120, 300))
Y = X[:, :10].sum(axis=1) + _RNG.standard_normal(120)
PROBLEMS = [
    {"norm": norms.L1(), "level": 0.5},
    {"norm": norms.KSupport(k=20), "form": "squared", "level": 0.05},
    {"norm": norms.LatentGroups([list(range(j, j + 4)) for j in range(0, 297, 2)]), "level": 1.0},
    {"norm": norms.OWL(np.linspace(1, 0.1, 300)), "level": 1.0},
    {"norm": norms.L1(), "level": 0.5, "loss": "quantile"},
]


LEDGER = Path(__file__).parents[2] / "benchmarks" / "results" / "kills.csv"


class Lost(AssertionError):
    """Something was lost, or an answer is another one."""


def ended(work: Callable[[], None], after: float, interrupt: bool = False) -> int:
    """Do the work in a process that is ended after so many seconds of its processor time.

    The timer's signal ends it at once, wherever it is, as SIGKILL does; or sends it Ctrl-C.
    Return its exit code.
    """
    number = os.fork()
    if not number:
        code = 1
        try:
            if interrupt:
                # Workers of a test run ignore Ctrl-C, and a fork of one would do so, too.
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
            else:
                signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, max(after, 1e-4))
            work()
            signal.setitimer(signal.ITIMER_PROF, 0)
            code = 0
        except KeyboardInterrupt:
            code = 130
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def checked(code: int, what: str) -> bool:
    """Return whether a process came to its end; raise where it failed by itself."""
    if code not in (0, -signal.SIGPROF):
        raise Lost(f"{what}: exit code {code}")
    return code == 0


def conversions(kills: int, seed: int = 0) -> Counter[str]:
    """Kill conversions of files of several kinds until so many were killed."""
    rng, counts = random.Random(seed), Counter[str]()
    while counts["killed"] < kills:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            source, data = _source(folder, rng)
            began = time.process_time()
            convert(source, folder / "undisturbed.store")
            enough = 1.2 * (time.process_time() - began)
            while not (folder / "out.store").exists():
                tries = rng.uniform(0.0, enough)
                work = lambda: convert(source, folder / "out.store")  # noqa: E731, B023
                counts["killed"] += not checked(ended(work, tries), f"convert {source.name}")
                enough *= 1.2  # a process that needs longer than the first one ends, too
            if list(folder.glob("*.partial")):
                raise Lost(f"{source.name}: something is left of the work")
            design = OnDisk(folder / "out.store")
            design.verify()
            if not np.array_equal(design.gather(np.arange(data.shape[1])).dense(), data):
                raise Lost(f"{source.name}: the store is not the source")
            counts["stores"] += 1
    return counts


def _source(folder: Path, rng: random.Random) -> tuple[Path, np.ndarray]:
    """Write a table in a format; return its path and its numbers."""
    data = np.random.default_rng(rng.randrange(2**31)).integers(-9, 9, (200, 30)).astype(float)
    kind = rng.choice(("csv", "npy", "npz", "svm"))
    path = folder / f"t.{kind}"
    if kind == "npy":
        np.save(path, data)
    elif kind == "npz":
        np.savez(path, X=data)
    elif kind == "csv":
        header = ",".join(f"c{j}" for j in range(data.shape[1]))
        np.savetxt(path, data, delimiter=",", header=header, comments="", fmt="%g")
    else:
        data[:, -1] = 1.0  # so that the last column is seen
        rows = [" ".join(f"{j + 1}:{x:g}" for j, x in enumerate(row) if x) for row in data]
        path.write_text("".join(f"0 {row}\n" for row in rows))
    return path, data


def solves(kills: int, seed: int = 0) -> Counter[str]:
    """Kill solves that keep a checkpoint at every step until so many were killed."""
    rng, counts = random.Random(seed), Counter[str]()
    while counts["killed"] < kills:
        arguments = rng.choice(PROBLEMS)
        began = time.process_time()
        best = solve_sum(X, Y, tol=1e-8, **arguments)
        enough = 2.0 * (time.process_time() - began) + 0.02
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)

            def work() -> None:
                keeper = solvers.Checkpoint(folder, every_s=0)  # noqa: B023
                found = solve_sum(X, Y, tol=1e-8, observers=[keeper], **arguments)  # noqa: B023
                _tell(folder / "answer", found)  # noqa: B023

            while not checked(ended(work, rng.uniform(0.0, enough)), repr(arguments)):
                counts["killed"] += 1
                enough *= 1.2
            _compare(json.loads((folder / "answer").read_text()), best, arguments)
        counts["answers"] += 1
    return counts


def interrupts(count: int, seed: int = 0) -> Counter[str]:
    """Interrupt so many solves at random moments."""
    rng, counts = random.Random(seed), Counter[str]()
    known = []
    for arguments in PROBLEMS:
        began = time.process_time()
        best = solve_sum(X, Y, tol=1e-9, time_limit=20, **arguments)
        known.append((arguments, best, time.process_time() - began))
    while counts["interrupted"] + counts["before a point"] < count:
        arguments, best, enough = rng.choice(known)
        with tempfile.TemporaryDirectory() as name:
            file = Path(name, "answer")

            def work() -> None:
                found = solve_sum(X, Y, tol=1e-13, time_limit=20, **arguments)  # noqa: B023
                signal.setitimer(signal.ITIMER_PROF, 0)
                _tell(file, found)  # noqa: B023

            code = ended(work, rng.uniform(0.0, enough), interrupt=True)
            if code == 130:
                counts["before a point"] += 1
                continue
            checked(code, repr(arguments))
            answer = json.loads(file.read_text())
            _compare(answer, best, arguments)
            counts["interrupted" if answer["status"] == "INTERRUPTED" else "done before"] += 1
    return counts


def _tell(file: Path, found: Result) -> None:
    file.write_text(json.dumps({
        "status": found.status.name, "objective": found.objective, "gap": found.gap,
        "coef": found.coef.tolist(),
    }))  # fmt: skip


def _compare(answer: dict, best: Result, arguments: dict) -> None:
    """Raise where the objective is not that of the point, or a better point refutes the gap."""
    w, slack = np.array(answer["coef"]), 1e-8 * best.objective
    residual = X @ w - Y
    loss = 0.5 * residual @ residual
    if arguments.get("loss") == "quantile":
        loss = 0.5 * np.abs(residual).sum()
    gauge = arguments["norm"].on(w.size).value(w)
    squared = arguments.get("form") == "squared"
    value = loss + arguments["level"] * (0.5 * gauge**2 if squared else gauge)
    if abs(value - answer["objective"]) > 10 * slack:
        raise Lost(f"{arguments}: objective {answer['objective']}, is {value}")
    if answer["objective"] - answer["gap"] > best.objective + slack:
        raise Lost(f"{arguments}: {answer['objective']} - {answer['gap']} > {best.objective}")


def main() -> int:
    """Print the counts of each kind; raise where something was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kills", description=__doc__)
    kinds = {"conversions": conversions, "solves": solves, "interrupts": interrupts}
    for name in kinds:
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ledger", action="store_true", help="add to benchmarks/results/kills.csv")
    options = parser.parse_args()
    for name, kind in kinds.items():
        if getattr(options, name):
            counts = dict(kind(getattr(options, name), options.seed))
            print(name, counts, flush=True)
            if options.ledger:
                with LEDGER.open("a") as stream:
                    told = " ".join(f"{key.replace(' ', '-')}:{n}" for key, n in counts.items())
                    stream.write(f"{name},{options.seed},{told}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
