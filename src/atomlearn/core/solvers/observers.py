"""Observers: functions of the progress, called after each step, outside the timed part."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TextIO

from atomlearn.core.interfaces import Arrays, WarmStart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.solvers.progress import Observer, Progress
from atomlearn.core.solvers.solver import Solver, State


@dataclass(slots=True)
class PrintProgress:
    """Print one line a step: iteration, passes, seconds, objective, relative gap, columns.

    Over implicit pairs also the share of the work that bounds spared.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from atomlearn import solve, solvers
    >>> lines = io.StringIO()
    >>> result = solve(np.eye(3), np.ones(3), level=0.5, observers=[solvers.PrintProgress(lines)])
    >>> "relative gap" in lines.getvalue()
    True
    """

    stream: TextIO | None = None
    every: int = 1
    _printed: bool = field(default=False, init=False)

    def __call__(self, progress: Progress) -> None:
        stream = self.stream or sys.stderr
        if not self._printed:
            print(
                f"{'step':>5} {'passes':>8} {'seconds':>9} {'objective':>14} "
                f"{'relative gap':>13} {'columns':>8}",
                file=stream,
            )
            self._printed = True
        record = progress.history[-1]
        if record.iteration % self.every:
            return
        spared = "" if record.skipped is None else f"  {100 * record.skipped:.0f}% skipped"
        print(
            f"{record.iteration:>5} {record.passes:>8.1f} {record.seconds:>9.2f} "
            f"{record.objective:>14.7g} {record.relative_gap:>13.2e} {record.n_columns:>8}{spared}",
            file=stream,
            flush=True,
        )


@dataclass(frozen=True, slots=True)
class Observed(Solver):
    """``run`` calls the observers after each step, beside those it is given.

    So whatever takes a solver can be observed and checkpointed.

    Parameters
    ----------
    solver : Solver
        Makes the steps, which are unchanged.
    observers : tuple of callables

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor, solvers
    >>> steps = []
    >>> count = lambda progress: steps.append(progress.passes)
    >>> solver = solvers.Observed(solvers.ColumnGeneration(), (count,))
    >>> model = AtomicRegressor(solver=solver).fit(np.eye(3), np.arange(3.0))
    >>> len(steps) > 0
    True
    """

    solver: Solver
    observers: tuple[Observer, ...]  # type: ignore[misc]

    @property
    def lifts(self) -> bool:  # type: ignore[override]
        """As the solver inside."""
        return self.solver.lifts

    @property
    def state_format(self) -> str:  # type: ignore[override]
        """As the solver inside."""
        return self.solver.state_format

    def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
        return self.solver.start(problem, warm)

    def step(self, problem: Problem, state: State) -> State:
        return self.solver.step(problem, state)

    def saved(self, state: State) -> Arrays:
        return self.solver.saved(state)

    def restored(self, problem: Problem, arrays: Arrays) -> State:
        return self.solver.restored(problem, arrays)
