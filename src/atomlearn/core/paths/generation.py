"""generated: feature generation to the number of features asked for, or to the optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn.core.interfaces.solver import WarmStart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result, Status
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.feature_generation import FeatureGeneration, GenerationState
from atomlearn.core.solvers.progress import Observer, Progress
from atomlearn.core.solvers.run import run
from atomlearn.core.solvers.stopping import Callback, Iterations, RelativeGap

#: Relative gap to which an optimum is found, where one is wanted.
FINISHED = 1e-12
#: Rounds without one more feature after which the optimum itself is looked for.
SETTLED = 10


def generated(
    problem: Problem,
    limit: int | None,
    wanted: int,
    tol: float,
    max_iter: int,
    observers: Sequence[Observer] = (),
) -> Result:
    """Return the result of feature generation, of ``wanted`` features where there are so many.

    ``limit`` None: all may be selected, so the run ends at the optimum. Where the optimum has fewer
    features than are wanted, generation would come to it in ever smaller steps: once it finds no
    further features for some rounds, column generation solves the problem.
    """
    solver = FeatureGeneration(n_features=limit)
    stop = RelativeGap(tol) | Iterations(max_iter)
    if limit is None:
        result = run(problem, solver, stop, observers)
        return finished(problem, result) if result.converged else result
    result = run(problem, solver, stop | Callback(_settled(SETTLED)), observers)
    if result.status is not Status.STOPPED_BY_CALLBACK:
        return result
    optimum = finished(problem, result)
    if optimum.status is Status.INTERRUPTED:
        best = optimum if optimum.state.units <= wanted else result
        return replace(best, status=optimum.status, passes=optimum.passes, seconds=optimum.seconds)
    if optimum.relative_gap <= tol and optimum.state.units <= wanted:
        return replace(optimum, status=Status.CONVERGED)
    # The optimum has more: generation finds the best of them by itself.
    again = run(problem, solver, stop, observers)
    passes, seconds = optimum.passes + again.passes, optimum.seconds + again.seconds
    return replace(again, passes=passes, seconds=seconds)


def _settled(rounds: int) -> Callable[[Progress], bool]:
    """Return whether the number of features has not grown for so many rounds."""
    most, since = 0, 0

    def asked(progress: Progress) -> bool:
        nonlocal most, since
        state: Any = progress.state
        most, since = (state.units, 0) if state.units > most else (most, since + 1)
        return since >= rounds

    return asked


def finished(problem: Problem, result: Result) -> Result:
    """Return the optimum itself, a few Newton steps away; where it is not found, what there was.

    Blocks that overlap share their features' weights in many ways, and where generation comes
    within the gap depends on rounding; the optimum does not.
    """
    start = WarmStart(result.columns, result.weights, result.intercept)
    solver = ColumnGeneration(tolerance=FINISHED)
    exact = run(problem, solver, RelativeGap(FINISHED) | Iterations(20), (), start)
    status = exact.status if exact.status is Status.INTERRUPTED else result.status
    passes, seconds = result.passes + exact.passes, result.seconds + exact.seconds
    if exact.gap > result.gap:
        return replace(result, status=status, passes=passes, seconds=seconds)
    state: GenerationState = result.state
    norm: Any = problem.regularizer.norm
    columns, weights = exact.state.columns, exact.state.weights
    units = columns
    if norm.groups is not None:
        units = norm.partition(problem.design.shape[1]).labels[columns]
    used = np.unique(units[weights != 0])
    # Groups are selected whole, zeros included.
    kept = np.flatnonzero(np.isin(units, used))
    kept = kept[np.argsort(columns[kept], kind="stable")]
    columns, weights = columns[kept], weights[kept]
    found = dict(state.found)
    for column in columns.tolist():
        found.setdefault(column, result.iterations)
    state = replace(state, columns=columns, weights=weights, found=found, units=used.size)
    return replace(
        exact,
        status=status,
        passes=passes,
        seconds=seconds,
        history=result.history,
        iterations=result.iterations,
        state=state,
    )
