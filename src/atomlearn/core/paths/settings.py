"""Settings: how exactly each problem of a path is solved, and by which solver."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from atomlearn.core.interfaces import Deadline, Solver, WarmStart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.checkpoint import Checkpoint
from atomlearn.core.solvers.default import default_solver
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.run import run
from atomlearn.core.solvers.stopping import Iterations, RelativeGap, StoppingRule


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``solve`` takes beside the problem itself.

    gap : relative duality gap to prove; max_iter : bound on steps; solver : None means the
    default for the norm, see ``solvers.default_solver``; stop : a further rule, asked in each run;
    observers : called after each step of each run; deadline : of all runs together; checkpoint :
    folder that keeps paths, so that one that was killed goes on where it was.

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

    def share(self, remaining: int, at_once: int = 1) -> Settings:
        """Return the same for the next of so many runs: its part of the time that is left.

        ``at_once`` of them go on side by side. What a run leaves of its part is the others'.
        """
        if self.deadline == Deadline.never():
            return self
        part = min(at_once / remaining, 1.0)
        return replace(self, deadline=Deadline.after(part * self.deadline.left))

    def run(
        self,
        problem: Problem,
        warm: WarmStart | None = None,
        observers: Iterable[Observer] = (),
    ) -> Result:
        """Return the solution of ``problem`` from the warm start, without the solver's state.

        The state holds a copy of the active columns: a result kept for long must not.
        """
        result = self.solve(problem, warm, observers)
        result.state = None
        return result

    def solve(
        self, problem: Problem, warm: WarmStart | None, observers: Iterable[Observer]
    ) -> Result:
        """Return the solution of ``problem`` from the warm start, with the solver's state."""
        rules: StoppingRule = RelativeGap(self.gap) | Iterations(self.max_iter)
        if self.stop is not None:
            rules = rules | self.stop
        problem = problem.until(problem.deadline.sooner(self.deadline))
        solver = self.solver or default_solver(problem.regularizer.norm, self.gap)
        watching = (*self.observers, *observers)
        if self.checkpoint is not None:
            watching = (*watching, Checkpoint(self.checkpoint, many=True))
        return run(problem, solver, rules, watching, warm)
