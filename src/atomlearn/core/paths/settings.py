"""Settings: accuracy, solver and limits of the problems of a path, and their task.

A level is the strength of the norm in the penalty. A reading of X is one pass over the data, which
computes the scores X'v of one or more vectors v.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from atomlearn.core import solvers
from atomlearn.core.interfaces import Array, Deadline, Scores, WarmStart, is_whole
from atomlearn.core.interfaces.norm import is_restrictable
from atomlearn.core.paths.ends import Reached
from atomlearn.core.paths.pool import Pool
from atomlearn.core.paths.shared_levels import SharedLevels
from atomlearn.core.problem.problem import Problem, changed, over_sums
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.run import RunSettings, SteppedLevels, default_solver, run
from atomlearn.core.solvers.schedule import Task, drive
from atomlearn.core.solvers.solver import MAX_ITER, TOLERANCE, Solver
from atomlearn.core.solvers.stopping import (
    FirstOf,
    Iterations,
    RelativeGap,
    StoppingRule,
    check_rule,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of ``solve`` other than the problem.

    Parameters
    ----------
    tol : float
        Relative duality gap to prove.
    max_iter : int
        Maximum number of steps of each run (the solution of one problem at one level).
    solver : Solver, optional
        Default: the solver made for the norm, see ``default_solver``.
    stop : StoppingRule, optional
        A further rule for each run.
    observers : tuple of callables
        Functions that are called after each step of each run, with its Progress.
    deadline : Deadline
        Time limit of all runs together.
    checkpoint : folder, optional
        Where paths are stored, so that the same call resumes a path that was killed.
    search : bool
        Whether the runs are parts of a cross-validation; observers can read this.

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
        """Raise ValueError if ``max_iter`` is no whole number >= 0, TypeError for other rules."""
        if self.stop is not None:
            check_rule(self.stop)
        if not is_whole(self.max_iter) or self.max_iter < 0:
            raise ValueError(
                f"max_iter must be a whole number >= 0, for example 1000, got {self.max_iter!r}"
            )

    def run_settings(self, problem: Problem) -> RunSettings:
        """Return solver, stopping rules and observers for the runs of ``problem``.

        A checkpoint is one more observer. ``plain`` in the result says that there are no observers
        and no further stopping rule.
        """
        norm = problem.regularizer.norm
        solver = self.solver or default_solver(norm, problem.design.shape[1], self.tol)
        # A ridge term couples the lifted coordinates (columns repeated for each group). A solver
        # over atoms does not use these coordinates.
        if self.solver is None and problem.tau and norm.lift(problem.design.shape[1]) is not None:
            solver = solvers.AtomGeneration(tol=self.tol)
        rules: StoppingRule = FirstOf((RelativeGap(self.tol), Iterations(self.max_iter)))
        rules = rules if self.stop is None else rules | self.stop
        checkpoints = []
        if self.checkpoint is not None:
            checkpoints.append(solvers.Checkpoint(self.checkpoint, many=True))
        observers: tuple[Observer, ...] = (*self.observers, *checkpoints)
        plain = self.stop is None and not observers
        return RunSettings(solver, rules, observers, self.search, plain)

    def within(self, share: float) -> Settings:
        """Return these settings with a deadline after ``share`` of the time that is left.

        Several searches in turn can so divide the remaining time.
        """
        return replace(self, deadline=Deadline.after(share * self.deadline.left))

    def run(self, problem: Problem, warm: WarmStart | None = None) -> Result:
        """Return the solution of ``problem``, with the solver's state in ``Result.state``.

        ``warm`` is the start; None means w = 0.
        """
        solver, rules, observers, *_ = self.run_settings(problem)
        return run(changed(problem, deadline=self.deadline), solver, rules, observers, warm)

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
        """Return the task that solves ``problem`` at the ``levels``, in their order.

        Several levels share readings of X if ``shares_levels`` allows it. Else they are solved one
        by one, the first from the start ``warm``. ``pool`` collects the columns that are likely to
        be in use; None: a new pool. ``zero`` has the scores at w = 0, if they are known.
        ``reached`` is called with the problem and the result of each level, and ends the path if it
        returns True. ``last`` returns the number of the last level, None if it is not known yet.
        """
        problem = changed(problem, deadline=self.deadline)
        settings = self.run_settings(problem)
        if warm is None and len(levels) > 1 and self.shares_levels(problem):
            pool = pool or Pool(problem)
            return SharedLevels(problem, levels, settings, self.tol, pool, zero, reached, last)
        return SteppedLevels(problem, levels.tolist(), settings, warm, reached)

    def paths(
        self, common: Problem, paths: Sequence[tuple[Problem, Array, Reached | None]]
    ) -> list[list[Result]] | None:
        """Return the results of each path, solved with shared readings; None after Ctrl-C.

        Each of ``paths`` has a problem, its levels in their order, and the function that ends it,
        see ``task``. ``common`` is the problem whose design they share. A pool keeps the columns
        that any path has used.
        """
        pools = Pool(common).for_paths(len(paths))
        tasks = [
            self.task(problem, levels, pool, reached=reached)
            for (problem, levels, reached), pool in zip(paths, pools, strict=True)
        ]
        return None if drive(common.design, tasks) else [task.results for task in tasks]

    def shares_levels(self, problem: Problem) -> bool:
        """Return whether several levels of ``problem`` can share readings of X.

        The solver must be the default one, and the loss smooth. The norm must rate columns one by
        one, and have no solver of its own. One reading must give X'v for many vectors v. A norm may
        have a lift: an equal norm over repeated columns, which then has to rate them.
        """
        loss = problem.loss
        norm = problem.regularizer.norm
        if not (
            self.solver in (None, ColumnGeneration(tol=self.tol))
            and loss.smoothed(1.0) is None  # a loss with kinks takes a series of smooth problems
            and problem.metric is None  # the ridge term is tau/2 ||w||^2
            and over_sums(problem).design.traits.reads_at_once  # X'v for many vectors v
            and norm.solver(self.tol) is None
        ):
            return False
        n_features = problem.design.shape[1]
        lift = norm.lift(n_features)
        # A ridge term would couple the copies of a column.
        if lift and problem.tau:
            return False
        norm = lift.norm if lift else norm
        rates = norm.scores_for_ratings is not None and norm.solver(0.0) is None
        return rates and is_restrictable(norm, lift.labels.size if lift else n_features)
