"""Progress: what stopping rules and observers see after each step; the observers; stalls."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, TextIO

from atomlearn.core.interfaces import Arrays, Lift, WarmStart
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Record
from atomlearn.core.solvers.solver import Solver, State, checked_warm_start


@dataclass(slots=True)
class Progress:
    """What stopping rules and observers see after each step.

    problem, solver : as they were given to the run; search : whether the run is a part of a
    cross-validation, whose point is not kept; objective, relative_gap, n_active : of the point;
    state : the solver's state; passes : passes
    over the data so far; seconds : wall time so far, observers excluded; history : one Record a
    step, this one included; lift, origin : what takes a point of the solver
    to one of the problem as it was given.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve
    >>> gaps = []
    >>> watch = lambda progress: gaps.append(progress.relative_gap)
    >>> result = solve(np.eye(3), np.arange(3.0), alpha=0.1, observers=[watch])
    >>> gaps[-1] == result.relative_gap
    True
    """

    problem: Problem
    solver: Solver
    search: bool = False
    state: State = field(init=False)
    passes: float = 0.0
    seconds: float = 0.0
    history: list[Record] = field(default_factory=list)
    lift: Lift | None = None
    origin: float = 0.0

    @property
    def n_active(self) -> int:
        """Number of columns with a non-zero weight."""
        return self.state.n_active()

    @property
    def n_columns(self) -> int:
        """The same, as the history calls it."""
        return self.n_active

    @property
    def objective(self) -> float:
        """F at this point."""
        return self.state.certificate.objective

    @property
    def relative_gap(self) -> float:
        """The proved bound on F - F*, divided by abs(F)."""
        return self.state.certificate.relative_gap

    def warm_start(self) -> WarmStart:
        """Return this very point, as the place where another solve of the problem can begin."""
        point = self.state.warm_start()
        if self.lift is not None:
            point = self.lift.lowered_start(point)
        return replace(point, intercept=point.intercept + self.origin)

    def record(
        self, state: State, passes: float, seconds: float, vectors: int, skipped: float | None
    ) -> None:
        """Take the state after a step, and add a line to the history."""
        self.state = state
        self.passes = passes
        self.seconds = seconds
        at = state.certificate
        n_columns = state.n_active()
        bounds = at.objective, at.gap, at.relative_gap
        record = Record(state.iteration, passes, seconds, *bounds, n_columns, skipped, vectors)
        self.history.append(record)


#: Called with the Progress after each step, outside the timed part.
Observer = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Resumed:
    """What is known of a problem from a run that was cut short.

    arrays : of the state, as ``Solver.saved`` gave them; iteration, passes, seconds, history : as
    they were; where : what messages call the place that it was read from.
    """

    arrays: Arrays
    iteration: int
    passes: float
    seconds: float
    history: list[Record]
    where: str = "the checkpoint"

    def state(self, problem: Problem, solver: Solver) -> State:
        """Return the state to go on from: its gap is proved afresh, by a pass over the data."""
        try:
            if not solver.state_format:
                checked_warm_start(WarmStart.of_arrays(self.arrays), problem)
            state = solver.restored(problem, self.arrays)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.where} holds no state of {type(solver).__name__} that can be gone on from "
                f"({error}); remove it to begin afresh"
            ) from error
        state.iteration = self.iteration
        return state


class RunObserver:
    """An observer that is also told when a run begins and ends. A plain function need not be one.

    resumes : whether ``begin`` may have something to go on from; one such observer is enough.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve, solvers
    >>> class Ending(solvers.RunObserver):
    ...     def end(self, progress):
    ...         print(progress.n_active, "columns")
    >>> result = solve(np.eye(3), np.ones(3), alpha=0.1, fit_intercept=False, observers=[Ending()])
    3 columns
    """

    resumes: ClassVar[bool] = False

    def begin(self, problem: Problem, solver: Solver) -> Resumed | None:
        """Learn the problem before the first step; return what to go on from, if anything."""
        return None

    def __call__(self, progress: Progress) -> None:
        """See a step that was made."""

    def end(self, progress: Progress) -> None:
        """See the last state of the run, whatever ended it."""


@dataclass(slots=True)
class PrintProgress:
    """Print one line a step: iteration, passes, seconds, objective, relative gap, columns.

    Over implicit pairs also the share of the work that bounds spared.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from atomlearn import solve, solvers
    >>> lines = io.StringIO()
    >>> watch = solvers.PrintProgress(lines)
    >>> result = solve(np.eye(3), np.arange(3.0), alpha=0.1, observers=[watch])
    >>> "relative gap" in lines.getvalue()
    True
    """

    stream: TextIO | None = None
    every: int = 1
    _printed: bool = field(default=False, init=False)

    def __call__(self, progress: Progress) -> None:
        stream = self.stream or sys.stderr
        if not self._printed:
            print(
                f"{'step':>5} {'passes':>8} {'seconds':>9} {'objective':>14} "
                f"{'relative gap':>13} {'columns':>8}",
                file=stream,
            )
            self._printed = True
        record = progress.history[-1]
        if record.iteration % self.every:
            return
        spared = "" if record.skipped is None else f"  {100 * record.skipped:.0f}% skipped"
        print(
            f"{record.iteration:>5} {record.passes:>8.1f} {record.seconds:>9.2f} "
            f"{record.objective:>14.7g} {record.relative_gap:>13.2e} {record.n_columns:>8}{spared}",
            file=stream,
            flush=True,
        )


@dataclass(slots=True)
class Stall:
    """Tells when a run has stalled: too many steps in a row without progress.

    A step is progress where what the solver minimises falls by more than rounding, or where the
    gap falls to nine tenths of what it was at the last such milestone. How many steps without
    progress a solver may need, it says itself (``State.patience``); infinite means that it has
    something new to try.

    merit, gap : the lowest so far and the last milestone; steps : without progress.
    """

    merit: float = math.inf
    gap: float = math.inf
    steps: int = 0

    def reason(self, state: State) -> Status | None:
        """Return STALLED where no progress is to be expected after this step, else None."""
        certificate = state.certificate
        merit = state.merit()
        lower = merit < self.merit - 1e-15 * abs(self.merit) or self.merit == math.inf
        closer = certificate.closable <= 0.9 * self.gap
        self.merit = min(merit, self.merit)
        self.gap = certificate.closable if closer else self.gap
        self.steps = 0 if lower or closer or state.patience == math.inf else self.steps + 1
        return Status.STALLED if self.steps >= state.patience else None
