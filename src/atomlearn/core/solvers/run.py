"""run: the only loop of the package. It owns counting, the clock, stopping and observers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from atomlearn._kernels import single_threaded_blas
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import Deadline, Lift, Solver, State, TimeIsUp, WarmStart
from atomlearn.core.interfaces.deadline import Work
from atomlearn.core.problem.free import free_part
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Record, Result, Status
from atomlearn.core.solvers.progress import (
    Observer,
    Progress,
    Resumed,
    RunObserver,
    Stall,
    Watching,
)
from atomlearn.core.solvers.smoothing import SmoothedSteps
from atomlearn.core.solvers.stopping import StoppingRule, check_rule
from atomlearn.core.solvers.warm_starts import checked_warm_start

#: A solver that stops by choice returns its last point, one that was cut short its best.
LAST_POINT = (Status.CONVERGED, Status.COLUMN_LIMIT, Status.SELECTED, Status.SEARCH_RELATIVE)

#: Problems of fewer entries are proved in some hundred steps of masters, or are held by rounding:
#: after so many steps, one or two seconds, they have stalled. A step of the solver adds two.
SMALL, MOST_WORK, MORE_WORK = 10_000, 8000, 2


def run(
    problem: Problem,
    solver: Solver,
    stop: StoppingRule,
    observers: Iterable[Observer] = (),
    warm: WarmStart | None = None,
) -> Result:
    """Step the solver until a stopping rule gives its reason. The only loop of the package.

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
    Ctrl-C ends the loop after the last finished step with status INTERRUPTED and the best point
    so far. The first step is never skipped by an interrupt: there must be a point to return.

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
    watching = _watching((*observers, *solver.observers))
    if warm is not None:
        warm = checked_warm_start(warm, problem)
    if problem.loss.smoothed(1.0) is not None:
        solver = SmoothedSteps(solver)
    counted = Counted.of(problem.design)
    problem = replace(problem, design=counted)
    resumed = [known for o in watching if (known := o.begin(problem, solver)) is not None]
    centered = problem.centered()
    if warm is not None:
        warm = replace(warm, intercept=warm.intercept - centered.origin)
    inner, lift = centered.entered(solver.lifts)
    start = warm if warm is None or lift is None else lift.start(warm)
    clock = _Clock(counted, resumed[0] if resumed else None)
    deadline = inner.deadline.sooner(stop.deadline(clock.began))
    if math.prod(problem.design.shape) < SMALL:
        deadline = Deadline(deadline.at, Work(MOST_WORK))
    inner = inner.until(deadline)
    with single_threaded_blas(), _quiet(problem):
        state = solver.start(inner, start) if not resumed else resumed[0].state(inner, solver)
        progress = Progress(state, history=clock.history)
        progress.lowered = _way_back(lift, centered.origin)
        chosen, status = _loop(inner, solver, stop, watching, progress, clock)
    for observer in watching:
        observer.end(progress)
    progress.seconds = clock.seconds()
    result = _result(inner, chosen, status, progress)
    if lift is not None:
        result = result.lowered(lift)
    if problem.free is not None:
        result = result.with_free(problem.free, *free_part(inner, chosen.prediction))
    result.norm = problem.regularizer.norm
    return result


def _quiet(problem: Problem) -> np.errstate:
    """Return what silences overflow where trial steps may meet it, as steep losses do.

    A point of an infinite objective is left, and what is not a number proves nothing.
    """
    kind: Literal["ignore"] | None = None if math.isfinite(problem.loss.smoothness) else "ignore"
    return np.errstate(over=kind, invalid=kind)


def _loop(
    problem: Problem,
    solver: Solver,
    stop: StoppingRule,
    observers: tuple[RunObserver, ...],
    progress: Progress,
    clock: _Clock,
) -> tuple[State, Status]:
    """Return the point to return, and why the run ended."""
    state = best = progress.state
    stall = Stall()
    try:
        while True:
            state.certificate = problem.given_back(
                state.certificate, state.intercept, state.prediction
            )
            progress.state = state
            clock.read(progress)
            progress.record()
            # Where bounds of a search stay open, they say nothing on which point is the better one.
            if state.certificate.closable <= best.certificate.closable:
                best = state
            problem = problem.until(clock.watched(observers, progress, problem.deadline))
            status = stop.reason(progress) or state.exhausted
            if status is None and problem.is_perfect(state.certificate):
                status = Status.PERFECT_FIT
            status = status or stall.reason(state)
            if status is None and (problem.deadline.exhausted or problem.deadline.late):
                status = _out_of(problem.deadline)
            if status is not None:
                break
            if problem.deadline.work is not None:
                problem.deadline.work.left += MORE_WORK
            with problem.deadline.kept():
                state = solver.step(problem, state)
    except TimeIsUp:
        status = _out_of(problem.deadline)
    except FloatingPointError:
        status = Status.STALLED
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return (state if status in LAST_POINT else best), status


def _out_of(deadline: Deadline) -> Status:
    """Return why a run must end now: its steps are made, or its time is up."""
    return Status.STALLED if deadline.exhausted else Status.TIME_LIMIT


def _way_back(lift: Lift | None, origin: float) -> Callable[[WarmStart], WarmStart]:
    """Return what takes a point of the solver to one of the problem as it was given."""

    def lowered(point: WarmStart) -> WarmStart:
        if lift is not None:
            point = lift.lowered_start(point)
        return replace(point, intercept=point.intercept + origin) if origin else point

    return lowered


def _watching(observers: Iterable[Observer]) -> tuple[RunObserver, ...]:
    """Return all as observers that can be told of begin and end; one at most resumes."""
    watching = tuple(o if isinstance(o, RunObserver) else Watching(o) for o in observers)
    keepers = sum(o.resumes for o in watching)
    if keepers > 1:
        raise ValueError(f"one Checkpoint is enough for a solve, got {keepers}")
    return watching


@dataclass(slots=True, init=False)
class _Clock:
    """Passes and seconds of one run, those of observers excluded, those resumed from included."""

    counted: Counted
    began: float
    passes: float
    searched: tuple[float, float]
    history: list[Record]

    def __init__(self, counted: Counted, resumed: Resumed | None) -> None:
        self.counted, self.searched = counted, counted.searched
        self.began, self.passes, self.history = time.monotonic(), counted.passes, []
        if resumed is not None:
            # The point is the last one of the history, priced again: one record of it is enough.
            self.began -= resumed.seconds
            self.passes -= resumed.passes
            self.history = resumed.history[:-1]

    def seconds(self) -> float:
        """Return the seconds so far."""
        return time.monotonic() - self.began

    def read(self, progress: Progress) -> None:
        """Write what it shows into the progress."""
        progress.passes = self.counted.passes - self.passes
        progress.seconds = self.seconds()
        done, possible = np.subtract(self.counted.searched, self.searched).tolist()
        progress.skipped = 1.0 - done / possible if possible > 0 else None

    def watched(
        self, observers: tuple[RunObserver, ...], progress: Progress, deadline: Deadline
    ) -> Deadline:
        """Call the observers; return the deadline put off by the time they took."""
        pause = time.monotonic()
        for observe in observers:
            observe(progress)
        pause = time.monotonic() - pause
        self.began += pause
        return deadline.later(pause)


def _result(problem: Problem, state: State, status: Status, progress: Progress) -> Result:
    kept = np.flatnonzero(state.weights)
    kept = kept[np.argsort(state.columns[kept], kind="stable")]
    certificate = state.certificate
    return Result(
        columns=state.columns[kept],
        weights=state.weights[kept],
        intercept=float(state.intercept) + problem.origin,
        objective=certificate.objective,
        gap=certificate.gap,
        relative_gap=certificate.relative_gap,
        status=status,
        passes=progress.passes,
        seconds=progress.seconds,
        n_features=problem.design.shape[1],
        dtype=problem.design.dtype,
        iterations=state.iteration,
        history=progress.history,
        shape=problem.regularizer.norm.matrix_shape or problem.design.matrix_shape,
        matrix_parts=state.matrix_parts(),
        search_gap=certificate.search_gap,
        state=state,
    )
