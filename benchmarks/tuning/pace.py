"""What the numbers of column generation trade: each field of ``Pace`` a factor of four either way.

Every variant solves every problem to the same gap, in turns with the values as they are. A row
gives the ratios of processor times and of passes over the data (geometric means over the problems),
and the problems whose passes changed.

    python -m benchmarks.tuning.pace [--smoke] [--out benchmarks/results]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from atomlearn import losses, norms, solve
from atomlearn.core.solvers.column_generation import Pace
from atomlearn.solvers import ColumnGeneration
from benchmarks.harness.options import Options
from benchmarks.harness.table import Table

FACTOR = 4
Solve = Callable[[ColumnGeneration], Any]


def problems(scale: int) -> dict[str, Solve]:
    """Return problems with more columns than samples, where passes and re-fits compete."""
    rng = np.random.default_rng(0)
    n, p = 30 * scale, 2000 * scale
    X = np.asfortranarray(rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1)))
    y = X[:, :20].sum(axis=1) + rng.standard_normal(n)
    z, signs = np.abs(X.T @ y).max(), np.sign(y)
    slopes = np.abs(X.T @ signs).max() / 2
    times = losses.survival_target(rng.random(n) < 0.7, rng.exponential(np.exp(-0.2 * y)))
    hazards = np.abs(X.T @ losses.Cox().gradient(times, np.zeros(n), np.ones(n))).max()
    support, groups = norms.KSupport(10), norms.Groups(np.arange(p) // 5)
    asked: dict[str, Any] = {"intercept": True}
    return {
        "l1": lambda solver: solve(X, y, level=0.05 * z, solver=solver, **asked),
        "l1, weak": lambda solver: solve(X, y, level=0.005 * z, solver=solver, **asked),
        "l1, logistic": lambda solver: solve(
            X, signs, loss="logistic", level=0.05 * slopes, solver=solver, **asked
        ),
        "l1, Cox, weak": lambda solver: solve(
            X, times, loss="cox", level=0.01 * hazards, solver=solver
        ),
        "k-support": lambda solver: solve(
            X, y, norm=support, level=0.3, form="squared", solver=solver, **asked
        ),
        "groups": lambda solver: solve(X, y, norm=groups, level=0.1 * z, solver=solver, **asked),
        "k-support, logistic": lambda solver: solve(
            X, signs, loss="logistic", norm=support, level=0.1 * slopes, solver=solver, **asked
        ),
    }


def measured(problem: Solve, pace: Pace) -> tuple[float, float]:
    """Return processor time and passes."""
    began = time.process_time()
    result = problem(ColumnGeneration(pace=pace))
    assert result.converged
    return time.process_time() - began, result.passes


def in_turns(problem: Solve, pace: Pace, repeats: int) -> tuple[float, float]:
    """Return the ratios of the least times and of the passes."""
    before = [(measured(problem, Pace()), measured(problem, pace)) for _ in range(repeats)]
    usual, varied = (list(column) for column in zip(*before, strict=True))
    return min(varied)[0] / min(usual)[0], varied[0][1] / usual[0][1]


def main(options: Options) -> None:
    """Vary one field after the other."""
    cases = problems(1 if options.smoke else 4)
    with Table("tuning_pace", options) as table:
        for field in fields(Pace):
            value = getattr(Pace(), field.name)
            for direction, factor in (("less", 1 / FACTOR), ("more", float(FACTOR))):
                other = max(1, int(value * factor)) if isinstance(value, int) else value * factor
                pace = replace(Pace(), **{field.name: other})
                found = {n: in_turns(case, pace, options.times(3)) for n, case in cases.items()}
                times, passes = (list(column) for column in zip(*found.values(), strict=True))
                table.add(
                    field=field.name,
                    value=direction,
                    time=float(np.exp(np.mean(np.log(times)))),
                    passes=float(np.exp(np.mean(np.log(passes)))),
                    changed="; ".join(n for n, (_, ratio) in found.items() if ratio != 1.0),
                )
        table.show()


if __name__ == "__main__":
    main(Options.parse(__doc__))
