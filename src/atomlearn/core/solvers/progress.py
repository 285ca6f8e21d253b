"""Progress of a run, passed to stopping rules and observers after each step; stall detection."""

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
        The problem as the user stated it.
    solver : Solver
        The solver that makes the steps.
    search : bool
        Whether the run is one fold of a cross-validation; checkpoints do not store such runs.
    state : State
        The solver's current iterate with its certificate.
    passes : float
        Number of passes over the data so far.
    seconds : float
        Wall time so far, without the time spent in observers.
    history : list of Record
        One record per step, including this step.
    lift : Lift, optional
        The map from the solver's lifted coordinates to features; None if they are the features.
    origin : float
        Constant that was subtracted from the targets; the user's intercept includes it.

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
        """Alias of ``n_active``: the name that records of the history use."""
        return self.n_active

    @property
    def objective(self) -> float:
        """Value of the objective F at the current iterate."""
        return self.state.certificate.objective

    @property
    def relative_gap(self) -> float:
        """The duality gap, a proved bound on F - F*, divided by abs(F); F* is the minimum of F."""
        return self.state.certificate.relative_gap

    def warm_start(self) -> WarmStart:
        """Return the current iterate as a warm start, in features and with the user's intercept."""
        point = self.state.warm_start()
        if self.lift is not None:
            point = self.lift.lowered_start(point)
        return replace(point, intercept=point.intercept + self.origin)

    def record(
        self, state: State, passes: float, seconds: float, vectors: int, skipped: float | None
    ) -> None:
        """Store the state after a step, and append a Record of it to the history.

        ``passes`` and ``seconds`` are totals of the run so far. ``vectors`` is the number of points
        that shared the last pass, and ``skipped`` the share of the work that upper bounds made
        unnecessary (None without a search).
        """
        self.state = state
        self.passes = passes
        self.seconds = seconds
        certificate = state.certificate
        n_columns = state.n_active()
        values = certificate.objective, certificate.gap, certificate.relative_gap
        record = Record(state.iteration, passes, seconds, *values, n_columns, skipped, vectors)
        self.history.append(record)


#: A function that is called with the Progress after each step; its time does not count.
Observer = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Resumed:
    """The saved state and history of an interrupted run, from which a new run resumes.

    Attributes
    ----------
    arrays : dict
        The solver's state, as ``Solver.saved`` returned it.
    iteration : int
        Number of steps of the interrupted run.
    passes : float
        Number of its passes over the data.
    seconds : float
        Its wall time.
    history : list of Record
        Its records, one per step.
    where : str
        Name of the checkpoint in error messages.
    """

    arrays: Arrays
    iteration: int
    passes: float
    seconds: float
    history: list[Record]
    where: str = "the checkpoint"

    def state(self, problem: Problem, solver: Solver) -> State:
        """Return the state restored from ``arrays`` for ``problem``, by one pass over the data.

        The pass computes the duality gap again.

        Raises
        ------
        ValueError
            If ``solver`` cannot restore a state from ``arrays``.
        """
        try:
            # With the format "" the arrays are those of a WarmStart: check its columns and weights.
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
    """Base class of observers that are also called when a run begins and when it ends.

    An observer that is only called after each step can be a plain function.

    ``resumes`` : whether ``begin`` may return a resume point; a run accepts one such observer.

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
        """Called before the first step of a run of ``solver`` on ``problem``.

        It returns a state to resume from, or None to start afresh.
        """
        return None

    def __call__(self, progress: Progress) -> None:
        """Called after each step with the ``progress`` of the run."""

    def end(self, progress: Progress) -> None:
        """Called once with the ``progress`` after the last step, for any reason to stop."""


@dataclass(slots=True)
class PrintProgress:
    """Observer that prints iteration, passes, seconds, objective, relative gap and column count.

    It prints one line per ``every`` steps to ``stream`` (default: standard error). For implicit
    products of columns, the line ends with the percentage of multiplications that pruning by upper
    bounds skipped.

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
        """Print a line about the last step of ``progress``, after a heading the first time."""
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
        # If columns are found by a search with upper bounds: the share of products it skipped.
        share = "" if record.skipped is None else f"  {100 * record.skipped:.0f}% skipped"
        print(
            f"{record.iteration:>5} {record.passes:>8.1f} {record.seconds:>9.2f} "
            f"{record.objective:>14.7g} {record.relative_gap:>13.2e} {record.n_columns:>8}{share}",
            file=stream,
            flush=True,
        )


@dataclass(slots=True)
class Stall:
    """Detects that a run has stalled: ``State.patience`` steps in a row made no progress.

    A step makes progress if the merit function (the value that the solver minimizes) falls by more
    than rounding, or if the duality gap falls to 0.9 times ``gap`` or less. The patience is
    infinite as long as new columns or atoms can join.

    Attributes
    ----------
    merit : float
        The lowest value of the merit function so far.
    gap : float
        The reference value of the duality gap: it is set to the current gap whenever that is at
        most 0.9 times the reference value. Infinite at first.
    steps : int
        Number of successive steps without progress.
    """

    merit: float = math.inf
    gap: float = math.inf
    steps: int = 0

    def reason(self, state: State) -> Status | None:
        """Update the counters with the ``state`` after a step; return STALLED or None.

        STALLED means that the last ``state.patience`` steps made no progress.
        """
        # ``closable`` is the duality gap that further atoms can close. A fall of the merit function
        # by less than rounding is no progress. The first step always counts as progress; without
        # its own condition, infinity - infinity = NaN would make the comparison false.
        certificate = state.certificate
        merit = state.merit()
        merit_fell = merit < self.merit - 1e-15 * abs(self.merit) or self.merit == math.inf
        gap_fell = certificate.closable <= 0.9 * self.gap
        self.merit = min(merit, self.merit)
        self.gap = certificate.closable if gap_fell else self.gap
        self.steps = 0 if merit_fell or gap_fell or state.patience == math.inf else self.steps + 1
        return Status.STALLED if self.steps >= state.patience else None
