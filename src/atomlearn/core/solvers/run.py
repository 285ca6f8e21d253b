"""The run of a problem at one level to its result: the clock, the steps, the stop, and ``run``.

Solves, levels of paths and folds of cross-validations are all runs, with the same observers,
stopping rules, time limits, checkpoints and interrupts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, NamedTuple, cast

import numpy as np

from atomlearn.core import solvers
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import Deadline, Lift, Norm, TimeIsUp, WarmStart
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.interfaces.deadline import Work
from atomlearn.core.problem.problem import (
    Problem,
    center_targets,
    enter,
    free_part,
    is_perfect,
    over_sums,
    with_amount,
    with_deadline,
)
from atomlearn.core.problem.proof import given_back
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.progress import Observer, Progress, Resumed, RunObserver, Stall
from atomlearn.core.solvers.schedule import Answer, Task, drive
from atomlearn.core.solvers.solver import Solver, State, checked_warm_start
from atomlearn.core.solvers.stopping import StoppingRule, check_rule

#: Reasons to stop after which the result is the last point; after others it is the best one.
LAST_POINT = {Status.CONVERGED, Status.PERFECT_FIT, Status.SEARCH_RELATIVE}
LAST_POINT |= {Status.COLUMN_LIMIT, Status.SELECTED}
#: Reasons for which a level is given up before it is solved.
CUT = (Status.INTERRUPTED, Status.TIME_LIMIT)
#: Entries of X below which steps of masters are counted. Such problems are proved in some hundred
#: steps, or rounding keeps their gap open.
SMALL = 10_000
#: Steps of masters, one or two seconds, after which a small problem has stalled.
MOST_WORK = 4000
#: Steps of masters that each step of the solver adds to these.
MORE_WORK = 2


class RunSettings(NamedTuple):
    """The solver of a run, the rules that end it, and its observers.

    ``search`` : whether the run is a part of a cross-validation.
    """

    solver: Solver
    rules: StoppingRule
    observers: tuple[Observer, ...] = ()
    search: bool = False


class Run:
    """One problem at one level: clock, history, observers, stopping rules, best point, result.

    Parameters
    ----------
    problem : Problem
    inner : Problem
        The problem of the solver: centered, in lifted coordinates if the norm is lifted.
    lift : Lift, optional
        The map back from lifted coordinates.
    settings : RunSettings

    Attributes
    ----------
    status : Status, optional
        Why the run ended; None until then.
    best : State, optional
        Its best point, with the certificate of this point.
    seconds : float
        Time of the run so far, without that of observers.
    """

    def __init__(
        self, problem: Problem, inner: Problem, lift: Lift | None, settings: RunSettings
    ) -> None:
        small = math.prod(problem.design.shape) < SMALL
        #: Steps that masters may still make; None if they are not counted.
        self.work = Work(MOST_WORK) if small else None
        self.problem = problem
        self.inner = inner
        self.lift = lift
        self.settings = settings
        self._run_observers = [each for each in settings.observers if isinstance(each, RunObserver)]
        keepers = sum(each.resumes for each in self._run_observers)
        if keepers > 1:
            raise ValueError(f"one Checkpoint is enough for a solve, got {keepers}")
        #: Whether an observer may have a point to resume from.
        self.resumes = keepers > 0
        self.progress = Progress(
            problem, settings.solver, settings.search, lift=lift, origin=inner.origin
        )
        self.status: Status | None = None
        self.best: State | None = None
        self.seconds = 0.0
        self._since: float | None = None
        self._before = 0.0
        self._sent = inner.design.row_access.sent
        self._stall = Stall()
        self._limit = settings.rules.seconds

    def begin(self) -> Resumed | None:
        """Call the observers at the begin; return the point to resume from if one has it."""
        known = [o.begin(self.problem, self.settings.solver) for o in self._run_observers]
        resumed = next((each for each in known if each is not None), None)
        if resumed is not None:
            self.seconds = resumed.seconds
            self._before = resumed.passes
            # The first step prices the last point of the history again and records it.
            self.progress.history = resumed.history[:-1]
        return resumed

    @contextmanager
    def clocked(self) -> Iterator[None]:
        """Let the clock run in a block, in which trial steps of steep losses may overflow.

        Solvers leave a point of infinite objective, and a NaN proves nothing.
        """
        bounded = math.isfinite(self.problem.loss.curvature_bounds[1])
        kind: Literal["ignore"] | None = None if bounded else "ignore"
        self._since = time.monotonic()
        try:
            with np.errstate(over=kind, invalid=kind):
                yield
        finally:
            self.seconds = self._elapsed()
            self._since = None

    def _elapsed(self) -> float:
        since = self._since
        return self.seconds + (0.0 if since is None else time.monotonic() - since)

    @property
    def deadline(self) -> Deadline:
        """Time at which the next step has to end: the problem's deadline or a rule of seconds."""
        left = self._limit - self._elapsed()
        return self.inner.deadline.sooner(Deadline(time.monotonic() + left, self.work))

    def steps(
        self, start: WarmStart | Resumed | None, counted: Counted, passes: float = 0.0
    ) -> Iterator[None]:
        """Make the solver's steps until there is a reason to stop; yield after each.

        ``passes`` : those of the run so far. A run also ends if it has stalled, or if its solver
        knows that no further step can change the point.
        """
        solver = self.settings.solver
        problem = self.inner
        if problem.loss.smoothed(1.0) is not None:
            solver = solvers.SmoothedSteps(solver)
        before = counted.passes
        (done, possible) = counted.searched
        state: State | None = None
        while True:
            with self.clocked():
                problem = with_deadline(self.inner, self.deadline)
                if self.work is not None:
                    self.work.left += MORE_WORK
                if state is not None:
                    try:
                        with problem.deadline.kept():
                            state = solver.step(problem, state)
                    except TimeIsUp:
                        self.status = self.out_of() or Status.TIME_LIMIT
                        return
                    except FloatingPointError:  # beyond the floats: the last good point stays
                        self.status = Status.STALLED
                        return
                elif isinstance(start, Resumed):
                    state = start.state(problem, solver)
                else:
                    state = solver.start(problem, start)
                more, spared = counted.searched
                skipped = 1.0 - (more - done) / (spared - possible) if spared > possible else None
                self.seen(state, passes + counted.passes - before, skipped=skipped)
                if self.status is not None:
                    return
            yield

    def seen(
        self, state: State, passes: float, vectors: int = 1, skipped: float | None = None
    ) -> None:
        """Record a priced point, show it to the observers, and set the status if the run ends.

        ``passes`` : over the data since the run began; ``vectors`` : number of points that shared
        the last one; ``skipped`` : see Record.
        """
        inside = state.certificate
        state.certificate = given_back(self.inner, inside, state.intercept, state.prediction)
        progress = self.progress
        progress.record(state, passes + self._before, self._elapsed(), vectors, skipped)
        # Bounds of a search that stay open do not count for which point is the better one.
        best = self.best
        if best is None or state.certificate.closable <= best.certificate.closable:
            self.best = state
        # The time of observers does not count.
        began = time.monotonic()
        for observe in self.settings.observers:
            observe(progress)
        if self._since is not None:
            self._since += time.monotonic() - began
        status = self.settings.rules.reason(progress) or state.exhausted
        if status is None and is_perfect(self.inner, inside):
            status = Status.PERFECT_FIT
        self.status = status or self._stall.reason(state) or self.out_of()

    def out_of(self) -> Status | None:
        """Return why the run must end now, for want of steps or time; else None."""
        deadline = self.deadline
        if not deadline.passed:
            return None
        return Status.STALLED if deadline.exhausted else Status.TIME_LIMIT

    def result(self) -> Result:
        """Return the result: the last point of a run that stopped by choice, else the best one."""
        assert self.best is not None
        assert self.status is not None
        progress = self.progress
        inner = self.inner
        state = progress.state if self.status in LAST_POINT else self.best
        for observer in self._run_observers:
            observer.end(progress)
        kept = state.weights.nonzero()[0]
        kept = kept[state.columns[kept].argsort(kind="stable")]
        certificate = state.certificate
        design = inner.design
        (rounds, n_bytes) = inner.design.row_access.sent
        result = Result(
            columns=state.columns[kept],
            weights=state.weights[kept],
            intercept=float(state.intercept) + inner.origin,
            objective=certificate.objective,
            gap=certificate.gap,
            status=self.status,
            tol=self.settings.rules.relative_gap,
            passes=progress.passes,
            seconds=self._elapsed(),
            n_features=design.shape[1],
            iterations=state.iteration,
            history=progress.history,
            shape=inner.regularizer.norm.matrix_shape or design.traits.matrix_shape,
            matrix_parts=state.matrix_parts(),
            search_gap=certificate.search_gap,
            sent=(rounds - self._sent[0], n_bytes - self._sent[1]),
            state=state,
        )
        if self.lift is not None:
            result = result.lowered(self.lift)
        free = free_part(inner, state.prediction)
        if free is not None:
            result = result.with_free(self.problem.free, *free)
        result.norm = self.problem.regularizer.norm
        return result


class SteppedLevels(Task):
    """Levels of a problem, solved one after the other by the steps of a solver.

    Parameters
    ----------
    problem : Problem
    levels : sequence of float
        In their order; each begins at the solution of the one before.
    settings : RunSettings
    warm : WarmStart, optional
        Start of the first level.
    reached : callable, optional
        Called with the problem and the result of each level; returns whether it is the last one.
    """

    def __init__(
        self,
        problem: Problem,
        levels: Sequence[float],
        settings: RunSettings,
        warm: WarmStart | None = None,
        reached: Callable[[Problem, Result], bool] | None = None,
    ) -> None:
        self.counted = Counted.of(problem.design)
        self.problem = replace(problem, design=self.counted)
        inner = center_targets(self.problem)
        if settings.solver.lifts:  # it works on columns, for which sums may be enough
            inner = over_sums(inner)
        self.inner, self.lift = enter(inner, settings.solver.lifts)
        self.levels = levels
        self.settings = settings
        self.warm = warm
        self.reached = reached
        self.results = []
        self.run: Run | None = None
        self.steps: Iterator[None] = iter(())

    def advance(self) -> None:
        """Solve a level; make one step only if time is limited, so that all tasks advance."""
        run = self.run or self._begin()
        for _ in self.steps:
            if run.deadline.at < math.inf:
                return

    def _begin(self) -> Run:
        level = self.levels[len(self.results)]
        problem = with_amount(self.problem, level)
        inner = with_amount(self.inner, level)
        run = self.run = Run(problem, inner, self.lift, self.settings)
        start: WarmStart | Resumed | None = run.begin()
        if start is None and self.warm is not None:
            warm = checked_warm_start(self.warm, problem)
            warm = replace(warm, intercept=warm.intercept - inner.origin)
            start = warm if self.lift is None else self.lift.start(warm)
        self.steps = run.steps(start, self.counted)
        return run

    def learn(self, answer: Answer | None) -> None:
        """Take the result of a level that has ended."""
        run = self.run
        if run is None or run.status is None:
            return
        result = run.result()
        self.run = None
        self.results.append(result)
        last = len(self.results) == len(self.levels) or run.status in CUT
        self.done = last or bool(self.reached and self.reached(run.problem, result))
        if not self.done:
            self.warm = result.warm_start()
            result.state = None

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
    stop : StoppingRule
        For example ``stopping.RelativeGap(1e-6) | stopping.Seconds(60)``. A run also ends if it
        has stalled, or if its solver knows that no further step can change the point.
    observers : iterable of callables
        Called with the Progress after each step; a ``RunObserver`` also at the begin and the end.
        The run resumes from a ``Checkpoint`` that has this problem.
    warm : WarmStart, optional
        Start of a run that does not resume.

    Returns
    -------
    Result
        The last point if a rule was met, else the best one.

    Notes
    -----
    Ctrl-C ends the run after the last finished step with status INTERRUPTED and the best point
    so far. KeyboardInterrupt is raised if there is no point yet.

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
    settings = RunSettings(solver, stop, tuple(observers))
    task = SteppedLevels(problem, [problem.regularizer.amount], settings, warm)
    drive(task.counted, [task])
    if not task.results:
        raise KeyboardInterrupt("interrupted before the first point")
    return task.results[0]


def default_solver(norm: Norm, tol: float) -> Solver:
    """Return column generation over subspaces if the norm allows it, else over rays.

    ``tol`` is the relative gap to prove. Norms that can neither be restricted to a few
    columns nor lifted get ``AtomGeneration``. Norms may name a solver: those of matrices name
    ``MatrixGeneration``.
    """
    own = norm.solver(tol)
    if own is not None:
        return cast(Solver, own)
    if norm.over_columns:
        return ColumnGeneration(tol=tol)
    return solvers.AtomGeneration(tol=tol)
