"""Settings: how exactly each problem of a path is solved, and by which solver."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from atomlearn.core.interfaces import Deadline, WarmStart, is_whole
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.checkpoint import Checkpoint
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.solver import Solver
from atomlearn.core.solvers.steps import default_solver, run
from atomlearn.core.solvers.stopping import Iterations, RelativeGap, StoppingRule


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``solve`` takes beside the problem itself.

    gap : relative duality gap to prove; max_iter : bound on steps; solver : None means the
    default for the norm, see ``solvers.default_solver``; stop : a further rule, asked in each run;
    observers : called after each step of each run; deadline : of all runs together; checkpoint :
    folder that keeps paths, so that one that was killed goes on where it was; search : whether the
    runs are parts of a cross-validation, which observers may want to know.

    Examples
    --------
    >>> from atomlearn import paths, solvers
    >>> settings = paths.Settings(gap=1e-8, solver=solvers.ColumnGeneration(tolerance=1e-8))
    """

    gap: float = 1e-6
    max_iter: int = 1000
    solver: Solver | None = None
    stop: StoppingRule | None = None
    observers: tuple[Observer, ...] = ()
    deadline: Deadline = field(default_factory=Deadline.never)
    checkpoint: str | os.PathLike[str] | None = None
    search: bool = False

    def __post_init__(self) -> None:
        if not is_whole(self.max_iter) or self.max_iter < 0:
            raise ValueError(
                f"max_iter must be a whole number >= 0, for example 1000, got {self.max_iter!r}"
            )

    @property
    def rules(self) -> StoppingRule:
        """The rules that end each run."""
        rules: StoppingRule = RelativeGap(self.gap) | Iterations(self.max_iter)
        return rules if self.stop is None else rules | self.stop

    def solver_for(self, problem: Problem) -> Solver:
        """Return the solver that was chosen, or the default of the problem's norm."""
        return self.solver or default_solver(problem.regularizer.norm, self.gap)

    def observers_of_runs(self) -> tuple[Observer, ...]:
        """Return all that see a run: the observers, and what keeps it in the folder."""
        if self.checkpoint is None:
            return self.observers
        return (*self.observers, Checkpoint(self.checkpoint, many=True))

    def within(self, share: float) -> Settings:
        """Return the same for the next of several searches: its share of the time that is left."""
        if self.deadline == Deadline.never():
            return self
        return replace(self, deadline=Deadline.after(share * self.deadline.left))

    def run(self, problem: Problem, warm: WarmStart | None = None) -> Result:
        """Return the solution of ``problem`` from the warm start, with the solver's state."""
        problem = problem.until(self.deadline)
        watching = self.observers_of_runs()
        return run(problem, self.solver_for(problem), self.rules, watching, warm)
