"""The main loop: ``run`` steps a solver on a problem at one level until a stopping rule holds.

A level is the regularization strength (lambda) of the norm. The master is the part of a solver that
re-fits the weights of few columns. A certificate is an objective with its duality gap. Single
solves, levels of paths and folds of cross-validations all use this loop, so they share observers,
stopping rules, time limits, checkpoints and the handling of Ctrl-C.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, NamedTuple, cast

import numpy as np

from atomlearn._support import Work
from atomlearn.core import solvers
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import Deadline, Lift, Loss, Norm, TimeIsUp, WarmStart
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.interfaces.norm import is_restrictable
from atomlearn.core.problem.problem import (
    Problem,
    center_targets,
    changed,
    enter,
    free_part,
    is_perfect,
    over_sums,
)
from atomlearn.core.problem.proof import as_reported
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.progress import Observer, Progress, Resumed, RunObserver, Stall
from atomlearn.core.solvers.schedule import Answer, Task, drive
from atomlearn.core.solvers.solver import Solver, State, checked_warm_start
from atomlearn.core.solvers.stopping import StoppingRule, check_rule

#: Reasons to stop after which the result is the last iterate. After any other reason it is the
#: iterate with the smallest certified duality gap.
LAST_POINT = {Status.CONVERGED, Status.PERFECT_FIT, Status.SEARCH_RELATIVE}
LAST_POINT |= {Status.COLUMN_LIMIT, Status.SELECTED}
#: Reasons that end a path at an unsolved level: no further level is started after them.
CUT = (Status.INTERRUPTED, Status.TIME_LIMIT)
#: Number of entries of X below which the master's steps are limited. Such small problems either
#: converge within a few hundred steps, or rounding keeps their duality gap open forever.
SMALL = 10_000
#: Number of steps of the master (one or two seconds) after which a small problem has stalled.
MOST_WORK = 4000
#: Number of steps by which each step of the solver raises this limit.
MORE_WORK = 2


class RunSettings(NamedTuple):
    """The solver of a run, the rules that end it, and its observers.

    Attributes
    ----------
    solver : Solver
    rules : StoppingRule
    observers : tuple of callables
        Called after each step.
    search : bool
        Whether the run is one fold of a cross-validation.
    plain : bool
        Whether only the gap and the number of steps end the run, and it has no observers.
    """

    solver: Solver
    rules: StoppingRule
    observers: tuple[Observer, ...] = ()
    search: bool = False
    plain: bool = False


class Run:
    """One solve of a problem at one level: its clock, history, best iterate and stopping status.

    Parameters
    ----------
    problem : Problem
        The problem as the user stated it.
    inner : Problem
        The equivalent problem that the solver sees: its targets are centered, and its coefficients
        are the lifted coordinates u with w = L u if the norm is lifted.
    lift : Lift, optional
        The map L from lifted coordinates to features; None if the norm is not lifted.
    settings : RunSettings
        The solver, the stopping rules and the observers.

    Attributes
    ----------
    status : Status, optional
        Why the run ended; None while it is running.
    best : State, optional
        The iterate with the smallest certified gap so far.
    seconds : float
        Wall time of the run so far, without the time spent in observers.
    """

    def __init__(
        self, problem: Problem, inner: Problem, lift: Lift | None, settings: RunSettings
    ) -> None:
        """Prepare the bookkeeping; raise ValueError if several observers offer a resume point."""
        # Fits to few data are limited by steps: a limit in seconds would not be reproducible.
        is_small = math.prod(problem.design.shape) < SMALL
        #: Number of steps that the master may still make; None if there is no limit.
        self.work = Work(MOST_WORK) if is_small else None
        self.problem = problem
        self.inner = inner
        self.lift = lift
        self.settings = settings
        self._run_observers = [
            observer for observer in settings.observers if isinstance(observer, RunObserver)
        ]
        n_resuming = sum(observer.resumes for observer in self._run_observers)
        if n_resuming > 1:
            raise ValueError(f"one Checkpoint is enough for a solve, got {n_resuming}")
        #: Whether an observer may provide a point from which the run resumes.
        self.resumes = n_resuming > 0
        self.progress = Progress(
            problem, settings.solver, settings.search, lift=lift, origin=inner.origin
        )
        self.status: Status | None = None
        self.best: State | None = None
        self.seconds = 0.0
        # The time at which the block under ``clocked`` began, if the clock runs.
        self._since: float | None = None
        # The passes that the run made before it was resumed from a checkpoint.
        self._before = 0.0
        # Counts of requests to other machines before this run: number, and bytes.
        self._sent = inner.design.row_access.sent
        self._stall = Stall()
        self._limit = settings.rules.seconds

    def begin(self) -> Resumed | None:
        """Call each observer's ``begin`` method; return the first resume point offered, or None.

        The clock, the passes and the history of the run continue those of the resume point.
        """
        offered = [
            observer.begin(self.problem, self.settings.solver) for observer in self._run_observers
        ]
        resumed = next((offer for offer in offered if offer is not None), None)
        if resumed is not None:
            self.seconds = resumed.seconds
            self._before = resumed.passes
            # The last record is dropped because the first step certifies that point again, and
            # then records it.
            self.progress.history = resumed.history[:-1]
        return resumed

    @contextmanager
    def clocked(self) -> Iterator[None]:
        """Time a ``with`` block, and silence warnings in it as ``silent`` does."""
        self._since = time.monotonic()
        try:
            with silent(self.problem.loss):
                yield
        finally:
            self.seconds = self._elapsed()
            self._since = None

    def _elapsed(self) -> float:
        """Return the seconds of the run so far, including the block that is being timed."""
        since = self._since
        return self.seconds + (0.0 if since is None else time.monotonic() - since)

    @property
    def deadline(self) -> Deadline:
        """The time by which the next step must end.

        It is the earlier one of the problem's deadline and the time limit of the stopping rules. It
        also passes when the master has no steps left.
        """
        seconds = self._limit - self._elapsed()
        return self.inner.deadline.sooner(Deadline(time.monotonic() + seconds, self.work))

    def steps(
        self, start: WarmStart | Resumed | None, counted: Counted, passes: float = 0.0
    ) -> Iterator[None]:
        """Start the solver and step it until ``status`` is set; yield between the steps.

        ``start`` is a warm start, a resume point of a checkpoint, or None for w = 0. ``counted`` is
        the design wrapped to count passes over the data, and ``passes`` is the number of passes
        that the run made before this call. The run also ends if it has stalled, or if the solver
        knows that no further step can change the iterate.
        """
        solver = self.settings.solver
        problem = self.inner
        # A loss with kinks is replaced by smooth ones in the steps of the solver.
        if problem.loss.smoothed(1.0) is not None:
            solver = solvers.SmoothedSteps(solver)
        passes_before = counted.passes
        # For implicit columns: the products that were computed, and those without upper bounds.
        (searched_before, possible_before) = problem.design.searched
        state: State | None = None
        while True:
            with self.clocked():
                # The remaining time of this step, and the allowed number of steps of the master.
                problem = changed(self.inner, deadline=self.deadline)
                if self.work is not None:
                    self.work.left += MORE_WORK
                if state is not None:
                    # ``kept`` makes the deadline known to code that does not get the problem.
                    try:
                        with problem.deadline.kept():
                            state = solver.step(problem, state)
                    except TimeIsUp:
                        self.status = self.spent_limit() or Status.TIME_LIMIT
                        return
                    except FloatingPointError:  # the step overflowed: keep the last finite iterate
                        self.status = Status.STALLED
                        return
                elif isinstance(start, Resumed):
                    state = start.state(problem, solver)
                else:
                    state = solver.start(problem, start)
                # The share of the products that upper bounds made unnecessary, since the run began.
                n_searched, possible = problem.design.searched
                skipped = (
                    1.0 - (n_searched - searched_before) / (possible - possible_before)
                    if possible > possible_before
                    else None
                )
                self.add_iterate(state, passes + counted.passes - passes_before, skipped=skipped)
                if self.status is not None:
                    return
            yield

    def add_iterate(
        self, state: State, passes: float, vectors: int = 1, skipped: float | None = None
    ) -> None:
        """Record an iterate, call the observers, and set ``status`` if a stopping rule holds.

        ``state`` is the iterate with its certificate (objective and duality gap). ``passes`` is the
        number of passes over the data since this process began the run. ``vectors`` is the number
        of dual vectors that shared the last pass. ``skipped`` is the share of the work that upper
        bounds made unnecessary (None without a search).
        """
        # The intercept that a Result reports is rounded once more; the gap must hold for it.
        certificate = state.certificate
        state.certificate = as_reported(self.inner, certificate, state.intercept, state.prediction)
        progress = self.progress
        progress.record(state, passes + self._before, self._elapsed(), vectors, skipped)
        # Iterates are compared by the gap that more atoms can close. If the best atom is found by
        # a heuristic search, the part of the gap due to its loose upper bound is left out.
        best = self.best
        if best is None or state.certificate.closable <= best.certificate.closable:
            self.best = state
        # The clock is moved forward so that the time spent in observers does not count.
        began = time.monotonic()
        for observe in self.settings.observers:
            observe(progress)
        if self._since is not None:
            self._since += time.monotonic() - began
        # The first of these reasons to stop: a rule, the solver, a perfect fit, a stall, a limit.
        status = self.settings.rules.reason(progress) or state.exhausted
        if status is None and is_perfect(self.inner, certificate):
            status = Status.PERFECT_FIT
        self.status = status or self._stall.reason(state) or self.spent_limit()

    def spent_limit(self) -> Status | None:
        """Return STALLED or TIME_LIMIT if no master steps or no time remain, else None."""
        deadline = self.deadline
        if not deadline.passed:
            return None
        return Status.STALLED if deadline.exhausted else Status.TIME_LIMIT

    def result(self) -> Result:
        """Return the Result: the last iterate if ``status`` is in LAST_POINT, else the best one.

        The coefficients are mapped back from lifted coordinates to features, and the intercept from
        centered to original targets. Unpenalized columns are included.
        """
        assert self.best is not None
        progress = self.progress
        inner = self.inner
        state = progress.state if self.status in LAST_POINT else self.best
        for observer in self._run_observers:
            observer.end(progress)
        result = self._result_at(state, self.settings.rules.relative_gap)
        # Some solvers take the lower bound on the optimum from an earlier point: report it too.
        if state.proved_by is not None:
            other = state.proved_by
            arguments = other.certificate, other.intercept, other.prediction
            proof = replace(other, certificate=as_reported(inner, *arguments))
            # This point only proves a lower bound, so that its gap may be of any size.
            result.proved_by = replace(self._result_at(proof, math.inf), state=None)
        return result

    def _result_at(self, state: State, tol: float) -> Result:
        """Return the iterate ``state`` as a Result, in the features and targets of the user.

        ``tol`` is the relative gap that the result claims if the status is CONVERGED.
        """
        progress = self.progress
        inner = self.inner
        assert self.status is not None
        # Keep the columns with a weight, in increasing order.
        nonzero = state.weights.nonzero()[0]
        nonzero = nonzero[state.columns[nonzero].argsort(kind="stable")]
        certificate = state.certificate
        design = inner.design
        (rounds, n_bytes) = inner.design.row_access.sent
        result = Result(
            columns=state.columns[nonzero],
            weights=state.weights[nonzero],
            intercept=float(state.intercept) + inner.origin,
            objective=certificate.objective,
            gap=certificate.gap,
            status=self.status,
            tol=tol,
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
            slopes=None if state.smoothing is None else state.smoothing.dual,
        )
        # Undo the changes of the problem. Centered targets were undone above, by adding ``origin``.
        # Next are lifted coordinates, and unpenalized columns, whose coefficients the loss fitted.
        if self.lift is not None:
            result = result.lowered(self.lift)
        free = free_part(inner, state.prediction)
        if free is not None:
            result = result.with_free(self.problem.free, *free)
        result.norm = self.problem.regularizer.norm
        # With several targets, columns may have been centered: correct the intercepts for it.
        if result.shape is not None:
            result = design.row_access.reported(result)
        return result


def silent(loss: Loss) -> np.errstate:
    """Return a context that silences overflow warnings if the curvature of ``loss`` is unbounded.

    Trial steps may then overflow. This is harmless: solvers reject a point of infinite objective,
    and a NaN never certifies a gap.
    """
    bounded = math.isfinite(loss.curvature_bounds[1])
    kind: Literal["ignore"] | None = None if bounded else "ignore"
    return np.errstate(over=kind, invalid=kind)


class SteppedLevels(Task):
    """A regularization path solved level by level, each level warm-started from the previous one.

    Parameters
    ----------
    problem : Problem
        The problem at any level.
    levels : sequence of float
        Regularization strengths (or radii), solved in this order.
    settings : RunSettings
        The solver, the stopping rules and the observers.
    warm : WarmStart, optional
        Warm start of the first level.
    reached : callable, optional
        Called with the problem and the result of each level; the path ends if it returns True.

    Attributes
    ----------
    counted : Counted
        The design, wrapped to count passes over the data.
    inner : Problem
        The equivalent problem that the solver sees, see ``Run``.
    lift : Lift, optional
        The map from lifted coordinates to features, see ``Run``.
    run : Run, optional
        The run of the current level; None between levels.
    steps : iterator
        Makes one step of this run each time it is advanced.
    """

    def __init__(
        self,
        problem: Problem,
        levels: Sequence[float],
        settings: RunSettings,
        warm: WarmStart | None = None,
        reached: Callable[[Problem, Result], bool] | None = None,
    ) -> None:
        """Center the targets, and lift the norm if the solver accepts lifted coordinates."""
        self.counted = Counted.of(problem.design)
        self.problem = replace(problem, design=self.counted)
        inner = center_targets(self.problem)
        # Solvers over columns need only sums over rows, which other machines can compute.
        if settings.solver.lifts:
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
        """Solve the current level, or make only one step of it if there is a time limit.

        With single steps, the scheduler advances all tasks equally before the time is over.
        """
        # The iterator ``steps`` yields after each step until the level is finished.
        run = self.run or self._begin()
        for _ in self.steps:
            if run.deadline.at < math.inf:
                return

    def _begin(self) -> Run:
        """Create the Run of the next level, from its checkpoint or else from the warm start."""
        level = self.levels[len(self.results)]
        problem = changed(self.problem, amount=level)
        inner = changed(self.inner, amount=level)
        run = self.run = Run(problem, inner, self.lift, self.settings)
        # The user's warm start is over features, and its intercept is for the original targets.
        start: WarmStart | Resumed | None = run.begin()
        if start is None and self.warm is not None:
            warm = checked_warm_start(self.warm, problem)
            warm = replace(warm, intercept=warm.intercept - inner.origin)
            start = warm if self.lift is None else self.lift.start(warm)
        self.steps = run.steps(start, self.counted)
        return run

    def learn(self, answer: Answer | None) -> None:
        """Store the result of a finished level, and warm-start the next level from it.

        ``answer`` is not used: these tasks make their passes themselves.
        """
        run = self.run
        if run is None or run.status is None:
            return
        # The path ends with its last level, at a time limit, or if ``reached`` returns True.
        result = run.result()
        self.run = None
        self.results.append(result)
        is_last = len(self.results) == len(self.levels) or run.status in CUT
        self.done = is_last or bool(self.reached and self.reached(run.problem, result))
        if not self.done:
            self.warm = result.warm_start()
            result.state = None

    def interrupt(self) -> None:
        """End after Ctrl-C: keep the best iterate of the current level as its result."""
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
    """Minimize the objective of a problem by stepping a solver until a stopping rule holds.

    Parameters
    ----------
    problem : Problem
        Loss, design, targets and penalty.
    solver : Solver
        The algorithm, for example ``ColumnGeneration()``.
    stop : StoppingRule
        For example ``stopping.RelativeGap(1e-6) | stopping.Seconds(60)``. A run also ends if it
        has stalled, or if its solver knows that no further step can change the point.
    observers : iterable of callables
        Called with the Progress after each step; a ``RunObserver`` is also called before the first
        step and after the last. The run resumes from a ``Checkpoint`` that holds this problem.
    warm : WarmStart, optional
        Warm start, used if the run does not resume from a checkpoint. Default: w = 0.

    Returns
    -------
    Result
        The last iterate if the run converged or reached its column limit, else the iterate with
        the smallest certified gap.

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
    # A single solve is a path of one level.
    settings = RunSettings(solver, stop, tuple(observers))
    task = SteppedLevels(problem, [problem.regularizer.amount], settings, warm)
    drive(task.counted, [task])
    if not task.results:
        raise KeyboardInterrupt("interrupted before the first point")
    return task.results[0]


def default_solver(norm: Norm, n_features: int, tol: float) -> Solver:
    """Return the default solver of a norm of ``n_features``, to the relative duality gap ``tol``.

    Some norms name their solver; norms of matrices name ``MatrixGeneration``. For other norms the
    solver is ``ColumnGeneration`` if the norm can be restricted to a few columns or lifted (written
    as a simpler norm of more coordinates). Otherwise it is ``AtomGeneration``, which needs only
    best atoms.
    """
    solver = norm.solver(tol)
    if solver is not None:
        return cast(Solver, solver)
    if is_restrictable(norm, n_features) or norm.lift(n_features) is not None:
        return ColumnGeneration(tol=tol)
    return solvers.AtomGeneration(tol=tol)
