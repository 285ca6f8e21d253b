"""Observed: a solver that brings its own observers, to wherever a solver can be given."""

from __future__ import annotations

from dataclasses import dataclass

from atomlearn.core.interfaces import Arrays, Solver, State, WarmStart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.solvers.progress import Observer


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
