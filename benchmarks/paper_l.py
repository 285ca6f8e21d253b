"""[L]'s experiment: squared k-support logistic regression on a million columns, and its rivals.

p = 1,000,000, n = 500, float32, 10,000 true features in 20 groups; k = 2000 to 10000; a strong
and a weak level (0.3 and 0.003 of the largest useful one); tau = 0. Everything to a proved
relative gap of 1e-6 in one run, side by side: ours, k-FCFW, FISTA with our prox and with BN, BS
and AS, ADMM with AS. Rivals get a time limit, and their rows say what gap they reached. Times are
also given in passes: the median time of one X'v in the same run. Peak memory is that of a process
that makes X and runs ours.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn.designs import as_design
from atomlearn.losses import Logistic
from atomlearn.norms import KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FISTA, KFCFW, ColumnGeneration
from atomlearn.testing.synthetic import make_k_support_logistic
from benchmarks.harness import Options, Table, Worker, race
from benchmarks.harness.memory import peak_bytes, reset_peak, resident_bytes
from benchmarks.ours import Ours, at_level
from experiments.rivals import ADMM

LEVELS = {"strong": 0.3, "weak": 0.003}
LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Size:
    """n samples of p columns, n_true of them true, and the k to run."""

    n: int = 500
    p: int = 1_000_000
    n_true: int = 10_000
    ks: tuple[int, ...] = (2000, 6000, 10_000)


class Bench:
    """The data with its problems; alone in a process it tells what ours needs of memory."""

    def __init__(self, size: Size) -> None:
        data = make_k_support_logistic(size.n, size.p, size.n_true, rng=0)
        self.X, self.y = data.X, data.y
        self.design = as_design(self.X)

    def problem(self, k: int, fraction: float) -> Problem:
        """Return the problem for this k, at this fraction of the largest useful level."""
        regularizer = Regularizer(KSupport(k), "squared", 1.0)
        return at_level(Problem.build(self.design, self.y, Logistic(), regularizer), fraction)

    def pass_seconds(self, repeats: int) -> tuple[float, float]:
        """Return the median time of one X'v by our kernel, and by NumPy (BLAS), interleaved."""
        v = np.random.default_rng(0).standard_normal(self.y.size)
        narrow = v.astype(self.X.dtype)
        times: dict[str, list[float]] = {"ours": [], "BLAS": []}
        calls = {"ours": lambda: self.design.scores(v), "BLAS": lambda: self.X.T @ narrow}
        for _ in range(repeats + 1):
            for name, call in calls.items():
                began = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - began)
        return float(np.median(times["ours"][1:])), float(np.median(times["BLAS"][1:]))

    def memory(self, k: int, fraction: float) -> tuple[float, float]:
        """Return the peak of ours over the size of X: of the whole process, and added to X."""
        problem = self.problem(k, fraction)
        before = resident_bytes()
        reset_peak()
        Ours("column generation", problem, ColumnGeneration()).run()
        peak = peak_bytes()
        return peak / self.X.nbytes, (peak - before) / self.X.nbytes


def entrants(problem: Problem, limit_s: float) -> list[Ours]:
    """Return ours and all that it is compared with."""
    rivals: dict[str, Any] = {
        "k-FCFW": KFCFW(),
        "FISTA, our prox": FISTA(),
        "FISTA, BN": FISTA("box_norm"),
        "FISTA, BS": FISTA("binary_search"),
        "FISTA, AS": FISTA("two_step"),
        "ADMM, AS": ADMM("two_step"),
    }
    ours = Ours("column generation", problem, ColumnGeneration())
    return [ours, *(Ours(name, problem, s, limit_s=limit_s) for name, s in rivals.items())]


def main() -> None:
    """Measure memory in a fresh process, then race."""
    options = Options.parse(__doc__)
    size = Size(60, 20_000, 400, (100, 400)) if options.smoke else Size()
    limit = 2.0 if options.smoke else LIMIT_S
    with Table("paper_l", options) as table:
        with Worker(Bench, size) as worker:
            memory = {
                (k, name): worker.call("memory", k, fraction)
                for k in size.ks
                for name, fraction in LEVELS.items()
            }
        bench = Bench(size)
        for k in size.ks:
            for name, fraction in LEVELS.items():
                problem = bench.problem(k, fraction)
                ours, blas = bench.pass_seconds(options.times(9))
                for row in race(entrants(problem, limit), options.times(3)):
                    extra: dict[str, Any] = {"pass_ms": 1e3 * ours, "blas_pass_ms": 1e3 * blas}
                    extra["pass_times"] = row["seconds"] / ours
                    if row["solver"] == "column generation":
                        whole, added = memory[k, name]
                        extra |= {"peak_over_X": whole, "added_over_X": added}
                    table.add(k=k, level=name, **row, **extra)
        own = [row for row in table.rows if row["solver"] == "column generation"]
        table.note(
            most_passes=max(row["passes"] for row in own),
            most_pass_times=max(row["pass_times"] for row in own),
            most_peak_over_X=max(row["peak_over_X"] for row in own),
        )


if __name__ == "__main__":
    main()
