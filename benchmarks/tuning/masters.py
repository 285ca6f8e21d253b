"""What the masters' numbers trade: each field of ``Tuning`` a factor of four down and up.

Every variant solves every problem to the same gap, in turns with the values as they are. A row
gives the ratios of processor times and of the masters' steps (geometric means over the problems),
and the problems whose steps changed. Sizes that these problems do not reach change nothing.

    python -m benchmarks.tuning.masters [--smoke] [--out benchmarks/results]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np

from atomlearn import designs, losses, norms, solve
from atomlearn.core.masters.tuning import TUNING, Tuning
from atomlearn.result import Result
from atomlearn.solvers import AtomGeneration
from benchmarks.harness.options import Options
from benchmarks.harness.table import Table

FACTOR = 4
Solve = Callable[[], Result]


@contextmanager
def varied(tuning: Tuning) -> Iterator[None]:
    """Let every master work with these numbers."""
    users = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("atomlearn.core.masters.") and hasattr(module, "TUNING")
    ]
    for module in users:
        module.TUNING = tuning  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in users:
            module.TUNING = TUNING  # type: ignore[attr-defined]


def variants() -> Iterator[tuple[str, str, Tuning]]:
    """Yield field, direction and the numbers; shares stay below one."""
    for field in fields(Tuning):
        value = getattr(TUNING, field.name)
        for direction, factor in (("less", 1 / FACTOR), ("more", float(FACTOR))):
            if isinstance(value, tuple):
                other: Any = tuple(min(each * factor, 1.0) for each in value)
            elif isinstance(value, int):
                other = max(1, int(value * factor))
            else:
                other = min(value * factor, 0.999) if value < 1 else value * factor
            if other != value:
                yield field.name, direction, replace(TUNING, **{field.name: other})


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
        "rays, logistic": lambda: solve(
            X[:, :60], signs, loss="logistic", norm=norms.L1(), level=0.05 * n, solver=rays, **asked
        ),
    }


def measured(solved: Solve) -> tuple[float, int, float]:
    """Return processor time, the masters' steps, and the objective."""
    began = time.process_time()
    result = solved()
    elapsed = time.process_time() - began
    return elapsed, int(getattr(result.state, "master_steps", 0)), float(result.objective)


def in_turns(solved: Solve, tuning: Tuning, repeats: int) -> tuple[float, float, bool]:
    """Return the ratios of the least times and of the steps, and whether the steps differ."""
    times, others = [], []
    for _ in range(repeats):
        before = measured(solved)
        with varied(tuning):
            after = measured(solved)
        times.append(before[0])
        others.append(after[0])
    assert abs(after[2] - before[2]) <= 1e-6 * abs(before[2]), "another optimum"
    return min(others) / min(times), after[1] / max(before[1], 1), after[1] != before[1]


def main(options: Options) -> None:
    """Vary one field after the other."""
    repeats = options.times(3)
    cases = problems(1 if options.smoke else 5)
    for case in cases.values():
        case()
    with Table("tuning_masters", options) as table:
        for field, direction, tuning in variants():
            found = {name: in_turns(case, tuning, repeats) for name, case in cases.items()}
            times, steps, differ = (list(column) for column in zip(*found.values(), strict=True))
            table.add(
                field=field,
                value=direction,
                time=float(np.exp(np.mean(np.log(times)))),
                steps=float(np.exp(np.mean(np.log(steps)))),
                changed="; ".join(name for name, each in zip(found, differ, strict=True) if each),
            )
        table.show()


if __name__ == "__main__":
    main(Options.parse(__doc__))
