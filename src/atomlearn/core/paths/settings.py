"""Settings: accuracy, solver and limits of the problems of a path, and their task."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from atomlearn.core import solvers
from atomlearn.core.interfaces import Array, Deadline, Scores, WarmStart, is_whole
from atomlearn.core.paths.ends import Reached
from atomlearn.core.paths.pool import Pool
from atomlearn.core.paths.shared_levels import SharedLevels
from atomlearn.core.problem.problem import Problem, over_sums, with_deadline
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.run import RunSettings, SteppedLevels, default_solver, run
from atomlearn.core.solvers.schedule import Task
from atomlearn.core.solvers.solver import MAX_ITER, TOLERANCE, Solver
from atomlearn.core.solvers.stopping import FirstOf, Iterations, RelativeGap, StoppingRule


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of ``solve`` other than the problem.

    Parameters
    ----------
    tol : float
        Relative duality gap to prove.
    max_iter : int
        Most steps of each run.
    solver : Solver, optional
        Default: that of the norm, see ``default_solver``.
    stop : StoppingRule, optional
        A further rule for each run.
    observers : tuple of callables
        Called after each step of each run.
    deadline : Deadline
        Of all runs together.
    checkpoint : folder, optional
        Keeps paths, so that the same call resumes one that was killed.
    search : bool
        Whether the runs are parts of a cross-validation; observers may want to know.

    Examples
    --------
    >>> from atomlearn import solvers
    >>> from atomlearn.core.paths.settings import Settings
    >>> settings = Settings(tol=1e-8, solver=solvers.ColumnGeneration(tol=1e-8))
    """

    tol: float = TOLERANCE
    max_iter: int = MAX_ITER
    solver: Solver | None = None
    stop: StoppingRule | None = None
    observers: tuple[Observer, ...] = ()
    deadline: Deadline = field(default_factory=Deadline)
    checkpoint: str | os.PathLike[str] | None = None
    search: bool = False

    def __post_init__(self) -> None:
        if not is_whole(self.max_iter) or self.max_iter < 0:
            raise ValueError(
                f"max_iter must be a whole number >= 0, for example 1000, got {self.max_iter!r}"
            )

    def how(self, problem: Problem) -> RunSettings:
        """Return solver, rules and observers of the runs of a problem."""
        norm = problem.regularizer.norm
        solver = self.solver or default_solver(norm, self.tol)
        # Squares of w couple the lifted coordinates, and atoms need none of these.
        if self.solver is None and problem.tau and norm.lift(problem.design.shape[1]) is not None:
            solver = solvers.AtomGeneration(tol=self.tol)
        rules: StoppingRule = FirstOf((RelativeGap(self.tol), Iterations(self.max_iter)))
        rules = rules if self.stop is None else rules | self.stop
        keepers = []
        if self.checkpoint is not None:
            keepers.append(solvers.Checkpoint(self.checkpoint, many=True))
        observers: tuple[Observer, ...] = (*self.observers, *keepers)
        plain = self.stop is None and not observers
        return RunSettings(solver, rules, observers, self.search, plain)

    def within(self, share: float) -> Settings:
        """Return the settings of the next of several searches, with a share of the time left."""
        return replace(self, deadline=Deadline.after(share * self.deadline.left))

    def run(self, problem: Problem, warm: WarmStart | None = None) -> Result:
        """Return the solution of ``problem`` with the solver's state, from the warm start."""
        solver, rules, observers, *_ = self.how(problem)
        return run(with_deadline(problem, self.deadline), solver, rules, observers, warm)

    def task(
        self,
        problem: Problem,
        levels: Array,
        pool: Pool | None = None,
        *,
        warm: WarmStart | None = None,
        zero: Scores | None = None,
        reached: Reached | None = None,
        last: Callable[[], int | None] | None = None,
    ) -> Task:
        """Return the task that solves a problem at the levels, in their order.

        Several levels share readings if the problem allows it.
        ``pool``, ``zero``, ``reached``, ``last`` : see ``SharedLevels``.
        """
        problem, how = with_deadline(problem, self.deadline), self.how(problem)
        if warm is None and len(levels) > 1 and self.shares_levels(problem):
            pool = pool or Pool(problem)
            return SharedLevels(problem, levels, how, self.tol, pool, zero, reached, last)
        return SteppedLevels(problem, levels.tolist(), how, warm, reached)

    def shares_levels(self, problem: Problem) -> bool:
        """Return whether levels of the problem can be guessed, solved and priced together.

        They cannot with another solver than the default one, with a norm (or a norm over lifted
        coordinates) that rates no columns, and with data that is read once for each vector.
        """
        loss = problem.loss
        norm = problem.regularizer.norm
        if not (
            self.solver in (None, ColumnGeneration(tol=self.tol))
            and loss.smoothed(1.0) is None  # a loss with kinks takes a series of smooth problems
            and problem.metric is None
            and over_sums(problem).design.traits.reads_at_once
            and norm.solver(self.tol) is None
        ):
            return False
        lift = norm.lift(problem.design.shape[1])
        if lift and problem.tau:
            return False
        norm = lift.norm if lift else norm
        return (
            norm.over_columns and norm.solver(0.0) is None and norm.scores_for_ratings is not None
        )
