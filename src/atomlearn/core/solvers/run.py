"""Run: one problem at one level on its way to its result. It owns counting, the clock, stopping.

Solves, levels of paths and folds of cross-validations are all runs: whatever makes the steps,
observers, stopping rules, time limits, checkpoints and interrupts are the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import numpy as np

from atomlearn.core.interfaces import Deadline, Lift
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.interfaces.deadline import Work
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.progress import Observer, Progress, Resumed, RunObserver, Stall
from atomlearn.core.solvers.solver import Solver, State
from atomlearn.core.solvers.stopping import StoppingRule

#: A solver that stops by choice returns its last point, one that was cut short its best.
LAST_POINT = (Status.CONVERGED, Status.COLUMN_LIMIT, Status.SELECTED, Status.SEARCH_RELATIVE)
#: Why a level was given up: its solution is not that of the level.
CUT = (Status.INTERRUPTED, Status.TIME_LIMIT)
#: Problems of fewer entries are proved in some hundred steps of masters, or are held by rounding:
#: after so many steps, one or two seconds, they have stalled. A step of the solver adds two.
SMALL, MOST_WORK, MORE_WORK = 10_000, 8000, 2


class Run:
    """One problem at one level: clock, history, observers, stopping rules, best point, result.

    Parameters
    ----------
    problem : Problem
        As it was given.
    inner, lift : Problem, Lift or None
        What the solver works on: centered, in lifted coordinates if it has any; and the way back.
    solver : Solver
        Makes the steps; its own observers, if it brings any, see the run too.
    rules : StoppingRule
    observers : iterable of callables
    search : bool
        Whether it is a part of a cross-validation.

    Attributes
    ----------
    status : why the run ended, None while it goes on; best : its best point, with the
    certificate of that very point; seconds : spent on it so far, without the time of observers.
    """

    def __init__(
        self,
        problem: Problem,
        inner: Problem,
        lift: Lift | None,
        solver: Solver,
        rules: StoppingRule,
        observers: Iterable[Observer] = (),
        search: bool = False,
    ) -> None:
        if math.prod(problem.design.shape) < SMALL:
            inner = inner.until(Deadline(work=Work(MOST_WORK)))
        self.problem, self.inner, self.lift = problem, inner, lift
        self.solver, self.rules = solver, rules
        self.observers = (*observers, *solver.observers)
        self.told = [each for each in self.observers if isinstance(each, RunObserver)]
        keepers = sum(each.resumes for each in self.told)
        if keepers > 1:
            raise ValueError(f"one Checkpoint is enough for a solve, got {keepers}")
        #: Whether an observer may know where to go on.
        self.resumes = keepers > 0
        self.progress = Progress(problem, solver, search, lift=lift, origin=inner.origin)
        self.status: Status | None = None
        self.best: State | None = None
        self.seconds = 0.0
        self._since: float | None = None
        self._before = 0.0
        self._stall = Stall()

    def begin(self) -> Resumed | None:
        """Tell the observers that the run begins; return what it goes on from, if anything."""
        known = [o.begin(self.problem, self.solver) for o in self.told]
        resumed = next((each for each in known if each is not None), None)
        if resumed is not None:
            self.seconds, self._before = resumed.seconds, resumed.passes
            # The point is the last one of the history, priced again: one record of it is enough.
            self.progress.history = resumed.history[:-1]
        return resumed

    def __enter__(self) -> Run:
        """Let the clock run."""
        self._since = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds, self._since = self._elapsed(), None

    def _elapsed(self) -> float:
        since = self._since
        return self.seconds + (0.0 if since is None else time.monotonic() - since)

    @property
    def deadline(self) -> Deadline:
        """When the next step has to end: by the problem's deadline, or by a rule of seconds."""
        return self.inner.deadline.sooner(Deadline.after(self.rules.seconds - self._elapsed()))

    def seen(
        self, state: State, passes: float, vectors: int = 1, skipped: float | None = None
    ) -> Status | None:
        """Take a point that was priced: record and show it; return why to stop here, or None.

        ``passes`` over the data since the run began; ``vectors`` : how many points shared the last
        one; ``skipped`` : see Record.
        """
        state.certificate = self.inner.given_back(
            state.certificate, state.intercept, state.prediction
        )
        progress = self.progress
        progress.state, progress.passes = state, passes + self._before
        progress.seconds, progress.skipped = self._elapsed(), skipped
        progress.record(vectors)
        # Where bounds of a search stay open, they say nothing on which point is the better one.
        best = self.best
        if best is None or state.certificate.closable <= best.certificate.closable:
            self.best = state
        self._show()
        self.status = self._reason(state)
        return self.status

    def _show(self) -> None:
        """Call the observers, whose time does not count."""
        began = time.monotonic()
        for observe in self.observers:
            observe(self.progress)
        pause = time.monotonic() - began
        if self._since is not None:
            self._since += pause

    def _reason(self, state: State) -> Status | None:
        status = self.rules.reason(self.progress) or state.exhausted
        if status is None and self.inner.is_perfect(state.certificate):
            status = Status.PERFECT_FIT
        return status or self._stall.reason(state) or self.out_of()

    def out_of(self) -> Status | None:
        """Return why the run must end now: its steps are made, or its time is up; else None."""
        if self.inner.deadline.exhausted:
            return Status.STALLED
        return Status.TIME_LIMIT if self.deadline.passed else None

    def result(self) -> Result:
        """Return the result: the last point of a run that stopped by choice, else the best one."""
        assert self.best is not None
        assert self.status is not None
        progress, inner = self.progress, self.inner
        state = progress.state if self.status in LAST_POINT else self.best
        for observer in self.told:
            observer.end(progress)
        kept = np.flatnonzero(state.weights)
        kept = kept[np.argsort(state.columns[kept], kind="stable")]
        certificate, design = state.certificate, inner.design
        result = Result(
            columns=state.columns[kept],
            weights=state.weights[kept],
            intercept=float(state.intercept) + inner.origin,
            objective=certificate.objective,
            gap=certificate.gap,
            relative_gap=certificate.relative_gap,
            status=self.status,
            passes=progress.passes,
            seconds=self._elapsed(),
            n_features=design.shape[1],
            dtype=design.dtype,
            iterations=state.iteration,
            history=progress.history,
            shape=inner.regularizer.norm.matrix_shape or design.matrix_shape,
            matrix_parts=state.matrix_parts(),
            search_gap=certificate.search_gap,
            state=state,
        )
        if self.lift is not None:
            result = result.lowered(self.lift)
        if self.problem.free is not None:
            free = inner.loss.free.free_part(inner.y, state.prediction, inner.weight)
            result = result.with_free(self.problem.free, *free)
        result.norm = self.problem.regularizer.norm
        return result
