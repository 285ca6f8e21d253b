"""Completion of a 10,000 x 10,000 matrix of rank 10 with 1 % observed, squared and logistic.

Levels of 0.2 (squared) and 0.65 (logistic) of the largest, where the optimum has about that rank;
a logistic fit at 0.35 has rank 100 and more, and takes minutes.
Ours to a proved relative gap of 1e-4, against soft-impute and its alternating form, alternating
ridge regressions (squared loss; both are told twice the true rank), Frank-Wolfe and its pairwise
steps (exact line search, factored atoms), to the same objective (within 1e-4) or the time limit.
Memory is the peak of a fresh process while it solves, over what it held before, in units of the
observed entries (row, column, value) plus the factors of the answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from atomlearn.core.solvers.stopping import Seconds, TargetObjective
from atomlearn.designs import Entries
from atomlearn.norms import TraceNorm
from atomlearn.papers.frank_wolfe import Direction
from atomlearn.solvers import FrankWolfe
from benchmarks.harness import Options, Table, Worker
from benchmarks.harness.memory import peak_bytes, reset_peak, resident_bytes
from benchmarks.matrices.completion_rivals import (
    Fit,
    Observed,
    alternating_ridge,
    soft_impute,
    soft_impute_als,
)
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]
GAP = 1e-4
LossName = Literal["squared", "logistic"]
#: Each with the columns its factors may have, in units of the true rank, which it is told.
RIVALS: dict[str, tuple[Callable[..., Fit], int]] = {
    "soft-impute": (soft_impute, 10),
    "soft-impute, ALS": (soft_impute_als, 2),
    "alternating ridge": (alternating_ridge, 2),
}


@dataclass(frozen=True, slots=True)
class Size:
    """side x side, of this rank, a share of it observed; the level relative to the largest."""

    side: int = 10_000
    rank: int = 10
    share: float = 0.01
    level: float = 0.2


class Bench:
    """The data of one problem, alone in a process."""

    def __init__(self, size: Size, loss: LossName) -> None:
        rng = np.random.default_rng(0)
        left, right = (rng.standard_normal((size.side, size.rank)) for _ in range(2))
        count = int(size.share * size.side**2)
        flat = np.unique(rng.integers(0, size.side**2, int(1.01 * count)))
        self.rows, self.cols = flat // size.side, flat % size.side
        z = np.einsum("ij,ij->i", left[self.rows], right[self.cols]) / np.sqrt(size.rank)
        if loss == "squared":
            y = z + 0.1 * rng.standard_normal(z.size)
        else:
            y = np.where(rng.random(z.size) < 1.0 / (1.0 + np.exp(-3.0 * z)), 1.0, -1.0)
        self.size, self.loss, self.y, self.truth = size, loss, y, z
        start = -self._slope(np.zeros(y.size))

        pull = csr_array((start, (self.rows, self.cols)), shape=(size.side, size.side))
        self.level = size.level * float(svds(pull, 1, return_singular_vectors=False)[0])

    def ours(self) -> dict[str, Any]:
        """Solve, and tell time, gap and memory."""
        side = self.size.side
        before = resident_bytes()
        reset_peak()
        began = time.perf_counter()
        fit = solve_sum(
            Entries(self.rows, self.cols, (side, side)),
            self.y,
            loss=self.loss,
            norm=TraceNorm(),
            level=self.level,
            tol=GAP,
        )
        seconds = time.perf_counter() - began
        assert fit.low_rank is not None
        unit = 24 * self.y.size + 16 * side * fit.low_rank.rank
        z = fit.low_rank.at(self.rows, self.cols)
        return {
            "seconds": seconds,
            "objective": fit.objective,
            "relative_gap": fit.relative_gap,
            "passes": fit.passes,
            "rank": fit.low_rank.rank,
            "correlation": float(np.corrcoef(z, self.truth)[0, 1]),
            "added_memory": (peak_bytes() - before) / unit,
            "ended": fit.status.name,
        }

    def rival(self, name: str, objective: float, limit_s: float) -> dict[str, Any]:
        """Run a rival until it is as good within the gap."""
        side = self.size.side
        data = Observed(
            self.rows, self.cols, self.y, (side, side), self._value, self._slope,
            1.0 if self.loss == "squared" else 4.0,
        )  # fmt: skip
        near, (method, columns) = objective * (1 + GAP), RIVALS[name]
        curve, left, _ = method(data, self.level, columns * self.size.rank, near, limit_s)
        return {
            "seconds": curve.seconds[-1],
            "objective": curve.objectives[-1],
            "passes": len(curve.seconds),
            "rank": left.shape[1],
            "ended": "REACHED" if curve.objectives[-1] <= near else "TIME_LIMIT",
        }

    def frank_wolfe(self, direction: Direction, objective: float, limit_s: float) -> dict[str, Any]:
        """Run a Frank-Wolfe method until it is as good within the gap."""
        side, near = self.size.side, objective * (1 + GAP)
        fit = solve_sum(
            Entries(self.rows, self.cols, (side, side)),
            self.y,
            loss=self.loss,
            norm=TraceNorm(),
            level=self.level,
            tol=GAP,
            max_iter=10**6,
            solver=FrankWolfe(direction=direction, tol=GAP),
            stop=TargetObjective(near) | Seconds(limit_s),
        )
        assert fit.low_rank is not None
        return {
            "seconds": fit.seconds,
            "objective": fit.objective,
            "relative_gap": fit.relative_gap,
            "passes": fit.passes,
            "rank": fit.low_rank.rank,
            "ended": "REACHED" if fit.objective <= near else fit.status.name,
        }

    def _slope(self, z: Array) -> Array:
        if self.loss == "squared":
            return z - self.y
        return np.asarray(-self.y / (1.0 + np.exp(self.y * z)))

    def _value(self, z: Array) -> float:
        if self.loss == "squared":
            return 0.5 * float(((z - self.y) ** 2).sum())
        return float(np.logaddexp(0.0, -self.y * z).sum())


def main() -> None:
    """Ours and each rival, for each loss."""
    options = Options.parse(__doc__)
    base = Size(200, 3, 0.2) if options.smoke else Size()
    with Table("completion", options) as table:
        losses: tuple[LossName, ...] = ("squared", "logistic")
        for loss in losses:
            size = replace(base, level=base.level if loss == "squared" else 0.65)
            with Worker(Bench, size, loss) as worker:
                ours = worker.call("ours")
            table.add(loss=loss, solver="ours", **ours)
            limit = 5.0 if options.smoke else 60.0
            for name in RIVALS:
                if name == "alternating ridge" and loss != "squared":
                    continue
                with Worker(Bench, size, loss) as worker:
                    rival = worker.call("rival", name, ours["objective"], limit)
                table.add(loss=loss, solver=name, **rival)
            for direction in ("toward", "pairwise"):
                with Worker(Bench, size, loss) as worker:
                    rival = worker.call("frank_wolfe", direction, ours["objective"], limit)
                name = "Frank-Wolfe" if direction == "toward" else f"Frank-Wolfe, {direction}"
                table.add(loss=loss, solver=name, **rival)


if __name__ == "__main__":
    main()
