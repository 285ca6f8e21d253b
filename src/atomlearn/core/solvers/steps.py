"""The steps of a solver: of one solve, or of levels one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, cast

import numpy as np

from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import Deadline, Norm, TimeIsUp, WarmStart
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.atom_generation import AtomGeneration
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.progress import Observer, Resumed
from atomlearn.core.solvers.run import CUT, MORE_WORK, Run
from atomlearn.core.solvers.schedule import Answer, Task, drive
from atomlearn.core.solvers.smoothing import SmoothedSteps
from atomlearn.core.solvers.solver import Solver, checked_warm_start
from atomlearn.core.solvers.stopping import StoppingRule, check_rule


def stepped(
    run: Run, start: WarmStart | Resumed | None, counted: Counted, passes: float = 0.0
) -> Iterator[None]:
    """Make the solver's steps until the run has a reason to stop; yield after each.

    ``passes`` : that the run has made until now.

    A run that has stalled, or whose solver knows that no step of its own can change the point, ends
    in any case.
    """
    solver = run.solver
    if run.problem.loss.smoothed(1.0) is not None:
        solver = SmoothedSteps(solver)
    problem, before, searched = run.inner, counted.passes, counted.searched
    with run, _quiet(problem):
        problem = problem.until(run.deadline)
        if isinstance(start, Resumed):
            state = start.state(problem, solver)
        else:
            state = solver.start(problem, start)
    while True:
        with run, _quiet(problem):
            done, possible = np.subtract(counted.searched, searched).tolist()
            skipped = 1.0 - done / possible if possible > 0 else None
            if run.seen(state, passes + counted.passes - before, skipped=skipped) is not None:
                return
            problem = problem.until(run.deadline)
            if problem.deadline.work is not None:
                problem.deadline.work.left += MORE_WORK
            try:
                with problem.deadline.kept():
                    state = solver.step(problem, state)
            except TimeIsUp:
                run.status = run.out_of() or Status.TIME_LIMIT
                return
            except FloatingPointError:  # a step beyond the floats: the last good point stays
                run.status = Status.STALLED
                return
        yield


class SteppedLevels(Task):
    """Levels of a problem one after the other, each by the steps of a solver.

    Parameters
    ----------
    problem : Problem
    levels : sequence of float
        In their order; each begins at the solution before it.
    solver, rules, observers
        See ``Run``.
    warm : WarmStart, optional
        Where the first level begins.
    reached : callable, optional
        Asked of the problem and the result of each level: is this the last one?
    """

    #: How long it goes on before it is the turn of others, where time is limited.
    TURN_S: ClassVar[float] = 0.1

    def __init__(
        self,
        problem: Problem,
        levels: Sequence[float],
        solver: Solver,
        rules: StoppingRule,
        observers: Iterable[Observer] = (),
        warm: WarmStart | None = None,
        reached: Callable[[Problem, Result], bool] | None = None,
        search: bool = False,
    ) -> None:
        self.counted = Counted.of(problem.design)
        self.problem = replace(problem, design=self.counted)
        self.inner, self.lift = self.problem.centered().entered(solver.lifts)
        self.levels, self.solver, self.rules = [float(level) for level in levels], solver, rules
        self.observers, self.warm, self.reached = tuple(observers), warm, reached
        self.search = search
        self.results = []
        self.run: Run | None = None
        self.steps: Iterator[None] = iter(())

    def advance(self) -> None:
        """Go to the end of a level; where time is limited, in turns with other tasks."""
        run = self.run or self._begin()
        turn = Deadline.after(self.TURN_S) if run.deadline.at < math.inf else Deadline.never()
        for _ in self.steps:
            if turn.passed:
                return

    def _begin(self) -> Run:
        level = self.levels[len(self.results)]
        problem, inner = self.problem.at(level), self.inner.at(level)
        how = self.solver, self.rules, self.observers, self.search
        run = self.run = Run(problem, inner, self.lift, *how)
        start: WarmStart | Resumed | None = run.begin()
        if start is None and self.warm is not None:
            warm = checked_warm_start(self.warm, problem)
            warm = replace(warm, intercept=warm.intercept - inner.origin)
            start = warm if self.lift is None else self.lift.start(warm)
        self.steps = stepped(run, start, self.counted)
        return run

    def learn(self, answer: Answer | None) -> None:
        """Take the result of a level that has ended."""
        run = self.run
        if run is None or run.status is None:
            return
        result, self.run = run.result(), None
        self.results.append(result)
        last = len(self.results) == len(self.levels) or run.status in CUT
        self.done = last or bool(self.reached and self.reached(run.problem, result))
        if not self.done:
            self.warm, result.state = result.warm_start(), None

    def interrupt(self) -> None:
        """Keep the best point of the level that was being solved."""
        if self.run is not None and self.run.best is not None:
            self.run.status = self.run.status or Status.INTERRUPTED
            self.learn(None)
        self.done = True


def run(
    problem: Problem,
    solver: Solver,
    stop: StoppingRule,
    observers: Iterable[Observer] = (),
    warm: WarmStart | None = None,
) -> Result:
    """Step the solver until a stopping rule gives its reason.

    Parameters
    ----------
    problem : Problem
    solver : Solver
        Its own observers, if it brings any, see the run too.
    stop : StoppingRule
        For example ``stopping.RelativeGap(1e-6) | stopping.Seconds(60)``. A run that has stalled,
        or whose solver knows that no step of its own can change the point, ends in any case.
    observers : iterable of callables
        Called with the Progress after each step; a ``RunObserver`` also at the begin and the end.
        A ``Checkpoint`` that knows this very problem is gone on from.
    warm : WarmStart, optional
        Where to begin, the first time.

    Returns
    -------
    Result
        The last point of a solver that stopped by choice, else the best one.

    Notes
    -----
    Ctrl-C ends the run after the last finished step with status INTERRUPTED and the best point
    so far. It is raised before the first point, when there is nothing to return.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, norms, problem, solvers
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> penalty = problem.Regularizer(norms.L1(), "penalized", 1.0)
    >>> task = problem.Problem.build(designs.as_design(X), y, losses.as_loss("squared"), penalty)
    >>> result = solvers.run(task, solvers.ColumnGeneration(), solvers.stopping.RelativeGap(1e-9))
    >>> result.coef.round(6).tolist()
    [2.0, 0.0, -1.0]
    """
    check_rule(stop)
    if not isinstance(solver, Solver):
        raise TypeError(
            "solver must be a Solver such as solvers.ColumnGeneration(), got "
            f"{type(solver).__name__}"
        )
    task = SteppedLevels(problem, [problem.regularizer.amount], solver, stop, observers, warm)
    drive(task.counted, [task])
    if not task.results:
        raise KeyboardInterrupt("interrupted before the first point")
    return task.results[0]


def _quiet(problem: Problem) -> np.errstate:
    """Return what silences overflow where trial steps may meet it, as steep losses do.

    A point of an infinite objective is left, and what is not a number proves nothing.
    """
    kind: Literal["ignore"] | None = None if math.isfinite(problem.loss.smoothness) else "ignore"
    return np.errstate(over=kind, invalid=kind)


def default_solver(norm: Norm, tolerance: float) -> Solver:
    """Return column generation over subspaces where the norm allows it, over rays elsewhere.

    ``tolerance`` is the relative gap that will be asked for. Norms that can neither be restricted
    to a few columns nor lifted get ``AtomGeneration``. Norms may name their own solver: those of
    matrices name ``MatrixGeneration``.
    """
    own = norm.solver(tolerance)
    if own is not None:
        return cast(Solver, own)
    if norm.over_columns:
        return ColumnGeneration(tolerance=tolerance)
    return AtomGeneration(tolerance=tolerance)
