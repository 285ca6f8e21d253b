"""[L] Figures 2 and 3: matrix pursuit, min 1/2 ||X - X W||_F^2 + lambda ||vec W||_k^2, lambda = 20.

MNIST at 14 x 14, 100 images a digit (W has a million entries), and USPS, 200 a digit (four
million); k = 4000 to 12,000. Ours, k-FCFW, FISTA with our prox and with BN, BS and AS, ADMM with
AS, to a proved relative gap of 1e-6 in one run. A pass is one product X'(X - X W). ADMM's ridge
systems are those of X alone, (X'X + rho I) W: one factorization serves all tasks.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.designs import Tasks
from atomlearn.losses import Squared
from atomlearn.norms import KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import FISTA, KFCFW, ColumnGeneration
from benchmarks.harness import Entrant, Options, Outcome, Table, race
from benchmarks.matrices.digits import Digits
from benchmarks.matrices.rivals import pursuit_admm
from benchmarks.ours import Ours

Array = NDArray[np.float64]
LEVEL = 40.0  # half of it is lambda
KS = (4000, 6000, 8000, 10_000, 12_000)
LIMIT_S = 20.0


class PursuitADMM(Entrant):
    """ADMM with the two-step prox (AS) until the gap is proved, or until its time is over."""

    name = "ADMM, AS"

    def __init__(self, problem: Problem, X: Array, limit_s: float) -> None:
        self.problem, self.X, self.limit_s = problem, X, limit_s

    def run(self) -> Outcome:
        return pursuit_admm(self.problem, self.X, 1e-6, self.limit_s)


def entrants(problem: Problem, X: Array, limit_s: float) -> list[Entrant]:
    """Return ours and all that it is compared with."""
    rivals: dict[str, Any] = {
        "k-FCFW": KFCFW(),
        "FISTA, our prox": FISTA(),
        "FISTA, BN": FISTA("box_norm"),
        "FISTA, BS": FISTA("binary_search"),
        "FISTA, AS": FISTA("two_step"),
    }
    timed = [Ours(name, problem, s, limit_s=limit_s) for name, s in rivals.items()]
    ours = Ours("column generation", problem, ColumnGeneration())
    return [ours, *timed, PursuitADMM(problem, X, limit_s)]


def pass_seconds(problem: Problem, repeats: int = 5) -> float:
    """Return the median time of one product X'V."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        problem.design.scores(problem.y)
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def main() -> None:
    """One row for each solver, data set and k."""
    options = Options.parse(__doc__)
    limit = 5.0 if options.smoke else LIMIT_S
    with Table("matrix_pursuit", options) as table:
        for name in ("mnist",) if options.smoke else ("mnist", "usps"):
            X, _ = Digits(name).draw(0, 10 if options.smoke else None)
            design = Tasks(X, X.shape[1])
            for k in (100,) if options.smoke else KS:
                regularizer = Regularizer(KSupport(k), "squared", LEVEL)
                problem = Problem.build(design, X.reshape(-1), Squared(), regularizer)
                seconds = pass_seconds(problem)
                for row in race(entrants(problem, X, limit), options.times(1)):
                    table.add(data=name, k=k, **row, pass_times=row["seconds"] / seconds)
        own = [row for row in table.rows if row["solver"] == "column generation"]
        table.note(most_passes=max(row["passes"] for row in own))


if __name__ == "__main__":
    main()
