"""What the masters' numbers trade: each field of ``Tuning`` a factor of four down and up.

Every variant solves every problem to the same gap, in turns with the values as they are. A row
gives the ratios of processor times and of the masters' steps (geometric means over the problems),
and the problems whose steps changed. Sizes that these problems do not reach change nothing.

    python -m benchmarks.tuning.masters [--smoke] [--out benchmarks/results]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atomlearn import designs, losses, norms, solve
from atomlearn.core.masters.tuning import TUNING
from atomlearn.result import Result
from atomlearn.solvers import AtomGeneration
from benchmarks.harness.options import Options
from benchmarks.tuning.turns import Case, table_of

Solve = Callable[[], Result]


def problems(scale: int) -> dict[str, Solve]:
    """Return one problem for each way through the table of ``choose_master``."""
    rng = np.random.default_rng(0)
    n, p = 40 * scale, 120 * scale
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
    y = X[:, : p // 20].sum(axis=1) + rng.normal(size=n)
    signs = np.sign(y)
    tall, target = rng.normal(size=(600 * scale, 60)), rng.normal(size=600 * scale)
    target += tall[:, :6].sum(axis=1)
    classes = rng.integers(0, 3, n)
    groups = norms.Groups(np.arange(p) // 4)
    overlapping = norms.LatentGroups([list(range(j, j + 6)) for j in range(0, 100, 3)])
    rays = AtomGeneration()
    asked: dict[str, Any] = {"gap": 1e-8}
    return {
        "l1": lambda: solve(X, y, norm=norms.L1(), level=0.05 * n, **asked),
        "l1, tall": lambda: solve(tall, target, norm=norms.L1(), level=9.0 * scale, **asked),
        "k-support, logistic": lambda: solve(
            X, signs, loss="logistic", norm=norms.KSupport(8), level=0.1, form="squared", **asked
        ),
        "groups": lambda: solve(X, y, norm=groups, level=0.1 * n, intercept=True, **asked),
        "groups, logistic": lambda: solve(
            X, signs, loss="logistic", norm=groups, level=0.02 * n, intercept=True, **asked
        ),
        "groups, constrained": lambda: solve(
            X, y, norm=groups, radius=5.0, form="constrained", **asked
        ),
        "overlapping groups": lambda: solve(
            X[:, :105], y, norm=overlapping, level=0.01 * n, **asked
        ),
        "classes": lambda: solve(
            designs.Tasks(X[:, :60], 3),
            np.eye(3)[classes].ravel(),
            loss=losses.Multinomial(3),
            norm=norms.L1(),
            level=0.02 * n,
            **asked,
        ),
        "l1, Huber": lambda: solve(
            X, 100.0 * y, loss=losses.Huber(1.0), norm=norms.L1(), level=0.1 * n, **asked
        ),
        "groups, Huber": lambda: solve(
            X, 100.0 * y, loss=losses.Huber(1.0), norm=groups, level=0.1 * n, **asked
        ),
        "rays, logistic": lambda: solve(
            X[:, :60], signs, loss="logistic", norm=norms.L1(), level=0.05 * n, solver=rays, **asked
        ),
    }


def counted(solved: Solve) -> Case:
    """Return the solve with its objective and the masters' steps."""

    def case() -> tuple[float, float]:
        result = solved()
        return float(result.objective), float(getattr(result.state, "master_steps", 0))

    return case


def main(options: Options) -> None:
    """Vary one field after the other."""
    cases = {name: counted(case) for name, case in problems(1 if options.smoke else 5).items()}
    table_of("tuning_masters", TUNING, cases, options, "steps")


if __name__ == "__main__":
    main(Options.parse(__doc__))
