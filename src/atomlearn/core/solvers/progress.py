"""Progress: the argument of stopping rules and observers after each step; observers; stalls."""

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
    """The state of a run after a step, for stopping rules and observers.

    Attributes
    ----------
    problem : Problem
    solver : Solver
    search : bool
        Whether the run is a part of a cross-validation, which keeps no point.
    state : State
        Of the solver.
    passes : float
        Passes over the data so far.
    seconds : float
        Wall time so far, without that of observers.
    history : list of Record
        One for each step, this one included.
    lift, origin : Lift, float
        They map a point of the solver to one of the problem.

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
        """The same, under its name in the history."""
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
        """Return this point as the start of another solve of the problem."""
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
    """The point and the history of a run that was cut short.

    Attributes
    ----------
    arrays : dict
        The state, as ``Solver.saved`` returned it.
    iteration, passes, seconds, history
        Those of the earlier run.
    where : str
        Name of the source, for messages.
    """

    arrays: Arrays
    iteration: int
    passes: float
    seconds: float
    history: list[Record]
    where: str = "the checkpoint"

    def state(self, problem: Problem, solver: Solver) -> State:
        """Return the state to resume from; a pass over the data proves its gap again."""
        try:
            if not solver.state_format:
                checked_warm_start(WarmStart.of_arrays(self.arrays), problem)
            state = solver.restored(problem, self.arrays)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.where} holds no state from which {type(solver).__name__} can resume "
                f"({error}); remove it to begin afresh"
            ) from error
        state.iteration = self.iteration
        return state


class RunObserver:
    """An observer that is also called when a run begins and ends. A plain function needs no class.

    ``resumes`` : whether ``begin`` may return a point to resume from; one such observer is enough.

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
        """Remember the problem before the first step; return a point to resume from, or None."""
        return None

    def __call__(self, progress: Progress) -> None:
        """See a step that was made."""

    def end(self, progress: Progress) -> None:
        """See the last state of the run, whatever ended it."""


@dataclass(slots=True)
class PrintProgress:
    """Print a line for each step: iteration, passes, seconds, objective, relative gap, columns.

    For implicit pairs the line also has the share of the work that bounds spared.

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
    """Decides when a run has stalled: too many steps in a row without progress.

    A step is progress if the merit of the solver falls by more than rounding, or if the gap falls
    to nine tenths of its last milestone. ``State.patience`` is the number of steps without
    progress that a solver may need; it is infinite if the solver has something new to try.

    Attributes
    ----------
    merit : float
        The lowest so far.
    gap : float
        The last milestone.
    steps : int
        Steps without progress.
    """

    merit: float = math.inf
    gap: float = math.inf
    steps: int = 0

    def reason(self, state: State) -> Status | None:
        """Return STALLED if no progress is to be expected after this step, else None."""
        certificate = state.certificate
        merit = state.merit()
        lower = merit < self.merit - 1e-15 * abs(self.merit) or self.merit == math.inf
        closer = certificate.closable <= 0.9 * self.gap
        self.merit = min(merit, self.merit)
        self.gap = certificate.closable if closer else self.gap
        self.steps = 0 if lower or closer or state.patience == math.inf else self.steps + 1
        return Status.STALLED if self.steps >= state.patience else None
