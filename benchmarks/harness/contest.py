"""contest: packages side by side, each at its loosest setting that is accurate enough.

Each solver lives in a process of its own, with its own copy of the data. Its first call is timed
(compilation included), then it is run over its tolerances from loose to tight until the objective,
computed by one plain function for all, is within 1e-6 (relative) of the best that is known; that
tolerance is then timed in interleaved rounds. The reference is the best of all runs, among them
ours to a proved gap of 1e-9.
"""

from __future__ import annotations

import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.worker import TimeLimit, Worker

Array = NDArray[np.float64]

#: Tolerances are tried from loose to tight, one decade after the other.
DECADES = tuple(10.0**-e for e in range(1, 13))
ACCURACY = 1e-6
#: One call may take this long; its process is ended then.
LIMIT_S = 60.0


class Problem(Protocol):
    """What is to be solved: its data, made from a seed, and its objective in plain NumPy."""

    loss: str

    def data(self) -> tuple[Any, Array, float]:
        """Return X, y and the level."""

    def objective(self, X: Any, y: Array, level: float, w: Array) -> float:
        """Return the objective at w, the same function for every solver."""


class Rival(ABC):
    """A solver with the data in its hands. ``fit`` solves once, from zero.

    passes : readings of the data in the last fit, where the solver tells.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    losses: ClassVar[tuple[str, ...]] = ("squared", "logistic")
    tolerances: ClassVar[tuple[float, ...]] = DECADES
    passes: float = math.nan

    def __init__(self, problem: Any, X: Any, y: Array, level: float, threads: int) -> None:
        self.problem, self.loss = problem, problem.loss
        self.X, self.y, self.level, self.threads = X, y, level, threads
        self.alpha = level / len(y)

    @classmethod
    def is_installed(cls) -> bool:
        """Return whether its package can be imported."""
        return find_spec(cls.package) is not None

    @abstractmethod
    def fit(self, tolerance: float) -> Array:
        """Return w."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One call of a solver: time, objective, number of non-zeros, readings of the data.

    processor : its processor seconds, of all threads, which others on the machine hardly change.
    """

    seconds: float
    objective: float
    selected: int
    passes: float
    processor: float = math.nan


class Bench:
    """A solver with the data, alone in a process."""

    def __init__(self, problem: Problem, solver: type[Rival], threads: int) -> None:
        X, y, level = problem.data()
        self.problem, self.X, self.y, self.level = problem, X, y, level
        self.solver = solver(problem, X, y, level, threads)

    def fit(self, tolerance: float) -> Fit:
        """Solve once and look at what came out."""
        began, used = time.perf_counter(), time.process_time()
        w = self.solver.fit(tolerance)
        seconds, used = time.perf_counter() - began, time.process_time() - used
        value = self.problem.objective(self.X, self.y, self.level, w)
        return Fit(seconds, value, int(np.count_nonzero(w)), self.solver.passes, used)

    def reading(self) -> float:
        """Return the seconds that one product X'v takes: no first-order method reads it sooner."""
        v, seconds = np.ones(self.X.shape[0]), []
        for _ in range(7):
            began = time.perf_counter()
            self.X.T @ v
            seconds.append(time.perf_counter() - began)
        return min(seconds)


@dataclass
class Contestant:
    """A solver, what was found out about it, and its times.

    tolerance : the loosest that is accurate, NaN where none was; best : its best objective;
    first : its first call in a fresh process, import and compilation included; runs : later ones;
    ended : why it was given up, in a line.
    """

    problem: Problem
    solver: type[Rival]
    threads: int
    worker: Worker | None = None
    tolerance: float = math.nan
    best: float = math.inf
    first: Fit | None = None
    runs: list[Fit] = field(default_factory=list)
    peak: int = 0
    ended: str = ""

    def restart(self) -> None:
        """Put the solver with the data into a fresh process."""
        self.close()
        self.worker = Worker(Bench, self.problem, self.solver, self.threads)

    def close(self) -> None:
        """End its process, if there is one."""
        if self.worker is not None:
            self.worker.close()
        self.worker = None

    def fit(self, tolerance: float) -> Fit | None:
        """Return a fit, None where it took too long or failed (the process is gone then)."""
        if self.worker is None:
            return None
        try:
            fit: Fit = self.worker.call("fit", tolerance, limit_s=LIMIT_S)
        except (TimeLimit, RuntimeError) as error:
            self.ended = f"tol {tolerance:g}: {str(error).strip().splitlines()[-1]}"
            self.close()
            return None
        self.best = min(self.best, fit.objective)
        return fit

    def search(self, reference: float) -> None:
        """Find the loosest tolerance that is accurate, in a process of its own."""
        self.restart()
        for tolerance in self.solver.tolerances:
            fit = self.fit(tolerance)
            if fit is None:
                break
            if fit.objective - min(reference, self.best) <= ACCURACY * abs(reference):
                self.tolerance = tolerance
                break
        else:
            self.ended = f"not accurate at tol {tolerance:g}"
        self.close()

    def row(self, reference: float, ours: float) -> dict[str, Any]:
        """Return its line of the table; ``ours`` is the time that ratios are taken to."""
        seconds = float(np.median([fit.seconds for fit in self.runs])) if self.runs else math.nan
        value = self.runs[-1].objective if self.runs else self.best
        return {
            "solver": self.solver.name,
            "tolerance": self.tolerance,
            "seconds": seconds,
            "ratio": seconds / ours,
            "least_s": min((fit.seconds for fit in self.runs), default=math.nan),
            "most_s": max((fit.seconds for fit in self.runs), default=math.nan),
            "first_call_s": self.first.seconds if self.first else math.nan,
            "suboptimality": (value - reference) / abs(reference),
            "selected": self.runs[-1].selected if self.runs else -1,
            "peak_gb": self.peak / 1e9,
            "ended": self.ended,
        }


def contest(problem: Problem, solvers: Sequence[type[Rival]], repeats: int) -> list[dict[str, Any]]:
    """Search, then time all that are accurate; the first solver, whose gap is proved, is ours."""
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    solvers = [s for s in solvers if problem.loss in s.losses and s.is_installed()]
    with Worker(Bench, problem, solvers[0], threads) as worker:
        reference = worker.call("fit", 1e-9).objective
    contestants = [Contestant(problem, solver, threads) for solver in solvers]
    try:
        for contestant in contestants:
            contestant.search(reference)
            reference = min(reference, contestant.best)
        _time(contestants, repeats)
    finally:
        for contestant in contestants:
            contestant.close()
    ours = float(np.median([fit.seconds for fit in contestants[0].runs] or [math.nan]))
    return [contestant.row(reference, ours) for contestant in contestants]


def _time(contestants: list[Contestant], repeats: int) -> None:
    """Time the first call of each in a fresh process, then later ones in interleaved rounds."""
    ready = [c for c in contestants if not math.isnan(c.tolerance)]
    for contestant in ready:
        contestant.restart()
        contestant.first = contestant.fit(contestant.tolerance)
    for turn in range(repeats):
        for shift in range(len(ready)):
            contestant = ready[(turn + shift) % len(ready)]
            if (fit := contestant.fit(contestant.tolerance)) is not None:
                contestant.runs.append(fit)
    for contestant in ready:
        if contestant.worker is not None:
            contestant.peak = contestant.worker.peak()
