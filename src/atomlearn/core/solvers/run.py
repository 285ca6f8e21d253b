"""run: the only loop of the package. It owns counting, the clock, stopping and observers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from atomlearn._kernels import single_threaded_blas
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import Lift, Solver, State
from atomlearn.core.interfaces.solver import WarmStart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Record, Result, Status
from atomlearn.core.solvers.checkpoint import Checkpoint, Saved
from atomlearn.core.solvers.fingerprint import same_norm
from atomlearn.core.solvers.observed import Observed
from atomlearn.core.solvers.progress import Observer, Progress, unchanged
from atomlearn.core.solvers.stopping import Exhausted, StoppingRule, check_rule

#: A solver that stops by choice returns its last point.
LAST_POINT = (Status.CONVERGED, Status.COLUMN_LIMIT, Status.SELECTED, Status.SEARCH_RELATIVE)


def run(
    problem: Problem,
    solver: Solver,
    stop: StoppingRule,
    observers: Iterable[Observer] = (),
    warm: WarmStart | None = None,
) -> Result:
    """Step the solver until a stopping rule gives its reason. The only loop of the package.

    Ctrl-C ends the loop after the last finished step with status INTERRUPTED and the best point
    so far. The first step is never skipped by an interrupt: there must be a point to return.
    A ``Checkpoint`` among the observers that knows this very problem is gone on from; ``warm``
    is for the first time.
    """
    check_rule(stop)
    if not isinstance(solver, Solver):
        raise TypeError(
            "solver must be a Solver such as solvers.ColumnGeneration(), got "
            f"{type(solver).__name__}"
        )
    watching = tuple(observers)
    if isinstance(solver, Observed):
        watching, solver = (*watching, *solver.observers), solver.solver
    if warm is not None:
        warm = checked_warm_start(warm, problem)
    counted = design if isinstance(design := problem.design, Counted) else Counted(design)
    problem = replace(problem, design=counted)
    stop = stop | Exhausted()
    saved = _begun(watching, problem, solver)
    lifted = problem.lifted() if solver.lifts else None
    with single_threaded_blas():
        if lifted is None:
            result = _loop(problem, solver, stop, watching, warm, counted, saved)
            result.norm = problem.regularizer.norm
            return result
        inner, lift = lifted
        start = None if warm is None else lift.start(warm)
        result = _loop(inner, solver, stop, watching, start, counted, saved, lift.lowered_start)
        result.norm = problem.regularizer.norm
        return _lowered(result, lift)


def _begun(observers: tuple[Observer, ...], problem: Problem, solver: Solver) -> Saved | None:
    """Return what the checkpoint among the observers has of this problem, None without."""
    keepers = [observe for observe in observers if isinstance(observe, Checkpoint)]
    if len(keepers) > 1:
        raise ValueError(f"one Checkpoint is enough for a solve, got {len(keepers)}")
    return keepers[0].begin(problem, solver) if keepers else None


def _lowered(result: Result, lift: Lift) -> Result:
    """Return the result over the features: w = L u, with u kept and told apart by sets."""
    features, weights = lift.lowered(result.columns, result.weights)
    return replace(
        result,
        columns=features,
        weights=weights,
        n_features=lift.expansion.shape[0],
        parts=lift.parts(result.columns, result.weights),
        lifted=(result.columns, result.weights),
    )


def _loop(
    problem: Problem,
    solver: Solver,
    stop: StoppingRule,
    observers: tuple[Observer, ...],
    warm: WarmStart | None,
    counted: Counted,
    saved: Saved | None,
    lowered: Callable[[WarmStart], WarmStart] = unchanged,
) -> Result:
    began, passes_before, watching = time.monotonic(), counted.passes, 0.0
    searched_before = counted.searched
    if saved is not None:
        began, passes_before = began - saved.seconds, passes_before - saved.passes
    problem = replace(problem, deadline=problem.deadline.sooner(stop.deadline(began)))
    state = solver.start(problem, warm) if saved is None else saved.state(problem, solver)
    # A resumed point is the last one of the history, priced again: one record of it is enough.
    history = [] if saved is None else saved.history[:-1]
    progress, best = Progress(state, history=history, lowered=lowered), state
    try:
        while True:
            progress.state = state
            progress.passes = counted.passes - passes_before
            progress.seconds = time.monotonic() - began - watching
            progress.skipped = _skipped_share(searched_before, counted.searched)
            progress.history.append(_record(progress))
            if _is_better(state, best):
                best = state
            pause = time.monotonic()
            for observe in observers:
                observe(progress)
            pause = time.monotonic() - pause
            watching += pause
            if (status := stop.reason(progress)) is not None:
                break
            if problem.deadline.passed:
                status = Status.TIME_LIMIT
                break
            problem = replace(problem, deadline=problem.deadline.later(pause))
            state = solver.step(problem, state)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    for observe in observers:
        if isinstance(observe, Checkpoint):
            observe.save(progress)
    # A solver that stops by choice returns its last point, one that was cut short its best.
    chosen = state if status in LAST_POINT else best
    progress.seconds = time.monotonic() - began - watching
    return _result(problem, chosen, status, progress)


def checked_warm_start(warm: object, problem: Problem) -> WarmStart:
    """Return the warm start as int64 columns and float64 weights, or say what is wrong with it.

    Atoms of another norm are left out: their weights do not bound the gauge of this one.
    """
    if not isinstance(warm, WarmStart):
        raise TypeError(
            "warm_start must be a Result or a WarmStart(columns, weights, intercept), got "
            f"{type(warm).__name__}"
        )
    n_features = problem.design.shape[1]
    columns, weights = np.asarray(warm.columns), np.asarray(warm.weights)
    if columns.dtype.kind not in "iu" and columns.size:
        raise TypeError(
            f"warm_start: columns must be whole numbers, got {columns.dtype}; use np.flatnonzero"
        )
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"warm_start: weights must be real numbers, got {weights.dtype}")
    if columns.ndim != 1 or columns.shape != weights.shape:
        raise ValueError(
            "warm_start: columns and weights must be vectors of one length, got shapes "
            f"{columns.shape} and {weights.shape}"
        )
    columns = columns.astype(np.int64, copy=False)
    if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < n_features:
        raise ValueError(
            f"warm_start: columns must lie in [0, {n_features}), got values from "
            f"{columns.min()} to {columns.max()}; is it of a fit to other data?"
        )
    if np.unique(columns).size < columns.size:
        raise ValueError("warm_start: columns must be distinct; add up weights of one column")
    if not (np.isfinite(weights).all() and np.isfinite(warm.intercept)):
        raise ValueError("warm_start: weights and intercept must be finite; start without it")
    weights = weights.astype(np.float64, copy=False)
    legal = warm.norm is None or same_norm(warm.norm, problem.regularizer.norm)
    return replace(
        warm,
        columns=columns,
        weights=weights,
        intercept=float(warm.intercept),
        atoms=warm.atoms if legal else (),
    )


def _is_better(state: State, best: State) -> bool:
    # Where bounds of a search stay open, they say nothing on which point is the better one.
    return state.certificate.closable <= best.certificate.closable


def _record(progress: Progress) -> Record:
    certificate = progress.state.certificate
    return Record(
        iteration=progress.state.iteration,
        passes=progress.passes,
        seconds=progress.seconds,
        objective=certificate.objective,
        gap=certificate.gap,
        relative_gap=certificate.relative_gap,
        n_columns=progress.n_columns,
        skipped=progress.skipped,
    )


def _result(problem: Problem, state: State, status: Status, progress: Progress) -> Result:
    kept = np.flatnonzero(state.weights)
    kept = kept[np.argsort(state.columns[kept], kind="stable")]
    certificate = state.certificate
    return Result(
        columns=state.columns[kept],
        weights=state.weights[kept],
        intercept=float(state.intercept),
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


def _skipped_share(before: tuple[float, float], now: tuple[float, float]) -> float | None:
    """Return the share of the possible multiplications that searches spared; None of none."""
    done, possible = now[0] - before[0], now[1] - before[1]
    return 1.0 - done / possible if possible > 0 else None
