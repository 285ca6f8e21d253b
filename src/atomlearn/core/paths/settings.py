"""Settings: how exactly each problem of a path is solved, by which solver, and in which task."""

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

    gap: float = TOLERANCE
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
        solver = self.solver or default_solver(norm, self.gap)
        # Squares of w couple the lifted coordinates, and atoms need none of these.
        if self.solver is None and problem.tau and norm.lift(problem.design.shape[1]) is not None:
            solver = solvers.AtomGeneration(tolerance=self.gap)
        rules: StoppingRule = FirstOf((RelativeGap(self.gap), Iterations(self.max_iter)))
        rules = rules if self.stop is None else rules | self.stop
        keepers = []
        if self.checkpoint is not None:
            keepers.append(solvers.Checkpoint(self.checkpoint, many=True))
        return RunSettings(solver, rules, (*self.observers, *keepers), self.search)

    def within(self, share: float) -> Settings:
        """Return the same for the next of several searches: its share of the time that is left."""
        return replace(self, deadline=Deadline.after(share * self.deadline.left))

    def run(self, problem: Problem, warm: WarmStart | None = None) -> Result:
        """Return the solution of ``problem`` from the warm start, with the solver's state."""
        solver, rules, observers, _ = self.how(problem)
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

        Levels share readings where the problem allows that and there are several of them.
        ``pool``, ``zero``, ``reached``, ``last`` : see ``SharedLevels``.
        """
        problem, how = with_deadline(problem, self.deadline), self.how(problem)
        if warm is None and len(levels) > 1 and self.shares_levels(problem):
            pool = pool or Pool(problem)
            return SharedLevels(problem, levels, how, self.gap, pool, zero, reached, last)
        return SteppedLevels(problem, levels.tolist(), how, warm, reached)

    def shares_levels(self, problem: Problem) -> bool:
        """Return whether levels of the problem can be guessed, solved and priced together.

        Not where another solver was chosen; not where the norm, or the one over lifted coordinates,
        rates no columns; not where the data is read once for each vector.
        """
        loss = problem.loss
        norm = problem.regularizer.norm
        if not (
            self.solver in (None, ColumnGeneration(tolerance=self.gap))
            and loss.bare.coupled <= 1
            and loss.smoothed(1.0) is None  # kinks, which take a row of smooth problems
            and problem.metric is None
            and over_sums(problem).design.reads_at_once
            and norm.solver(self.gap) is None
        ):
            return False
        lift = norm.lift(problem.design.shape[1])
        if lift and problem.tau:
            return False  # refused, with what to do about it, by whoever solves one level
        norm = lift.norm if lift else norm
        return norm.over_columns and norm.solver(0.0) is None and norm.rates_columns
