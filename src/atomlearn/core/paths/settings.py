"""Settings: how exactly each problem of a path is solved, and by which solver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from atomlearn.core.interfaces import Solver
from atomlearn.core.interfaces.solver import WarmStart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.default import default_solver
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.run import run
from atomlearn.core.solvers.stopping import Iterations, RelativeGap


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``solve`` takes beside the problem itself.

    gap : relative duality gap to prove; max_iter : bound on steps; solver : None means the
    default for the norm, see ``solvers.default_solver``.
    """

    gap: float = 1e-6
    max_iter: int = 1000
    solver: Solver | None = None

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
        rules = RelativeGap(self.gap) | Iterations(self.max_iter)
        solver = self.solver or default_solver(problem.regularizer.norm, self.gap)
        return run(problem, solver, rules, observers, warm)
