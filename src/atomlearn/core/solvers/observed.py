"""Observed: a solver that brings its own observers, to wherever a solver can be given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atomlearn.core.interfaces import Solver, State
from atomlearn.core.interfaces.solver import WarmStart
from atomlearn.core.problem.problem import Problem

if TYPE_CHECKING:
    from atomlearn.core.solvers.progress import Progress


@dataclass(frozen=True, slots=True)
class Observed(Solver):
    """``run`` calls the observers after each step, beside those it is given.

    So estimators, paths and cross-validation, which take a solver, can be observed and
    checkpointed: ``AtomicRegressor(solver=Observed(ColumnGeneration(), (Checkpoint(folder),)))``.
    """

    solver: Solver
    observers: tuple[Callable[[Progress], None], ...]

    def start(self, problem: Problem, warm: WarmStart | None = None) -> State:
        return self.solver.start(problem, warm)

    def step(self, problem: Problem, state: State) -> State:
        return self.solver.step(problem, state)
