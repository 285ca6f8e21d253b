"""generated: feature generation to the number of features asked for, or to the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn.core import (
    ColumnGeneration,
    Iterations,
    Observer,
    Problem,
    Progress,
    RelativeGap,
    Result,
    Status,
    StoppingRule,
    WarmStart,
    run,
)
from atomlearn.papers.feature_generation import (
    FeatureGeneration,
    GenerationState,
    groups_of_columns,
)

#: Rounds without one more feature after which the optimum itself is looked for, and the relative
#: gap to which it is found.
SETTLED = 5
FINISHED = 1e-12


def generated(
    problem: Problem,
    limit: int | None,
    wanted: int,
    tol: float,
    max_iter: int,
    observers: Sequence[Observer] = (),
    also_stop: StoppingRule | None = None,
    selected_tol: float | None = None,
    solver: FeatureGeneration | None = None,
) -> Result:
    """Return the result of feature generation, of ``wanted`` features if there are that many.

    ``limit`` None: all may be selected, so the run ends at the optimum. If that is all that is left
    to find, generation would come to it in ever smaller steps: once it finds no further features
    for some rounds, column generation solves the problem. ``also_stop`` is one more rule that ends
    generation; ``selected_tol`` the relative gap over the selected features to which the last round
    is solved; ``solver`` has the paper's own rules, if any.
    """
    solver = replace(solver or FeatureGeneration(), n_features=limit, tol=selected_tol)
    stop: StoppingRule = RelativeGap(tol) | Iterations(max_iter)
    if also_stop is not None:
        stop = stop | also_stop
    settled = _Settled()
    result = run(problem, solver, stop | settled, observers)
    if not settled.reached and not (limit is None and result.converged):
        return result
    optimum = polished(problem, result)
    few = optimum.state.units <= wanted
    interrupted = optimum.status is Status.INTERRUPTED
    if few and (interrupted or optimum.relative_gap <= tol):
        return optimum if interrupted else replace(optimum, status=Status.CONVERGED, tol=tol)
    if interrupted or problem.deadline.passed:
        status = optimum.status if interrupted else Status.TIME_LIMIT
        return replace(result, status=status, passes=optimum.passes, seconds=optimum.seconds)
    # The optimum has more: generation finds the best of them by itself.
    again = run(problem, solver, stop, observers)
    passes = optimum.passes + again.passes
    seconds = optimum.seconds + again.seconds
    return replace(again, passes=passes, seconds=seconds)


class _Settled(StoppingRule):
    """As soon as the number of features has not grown for this number of rounds."""

    def __init__(self) -> None:
        self.most = self.since = 0

    @property
    def reached(self) -> bool:
        """Whether this number of rounds have brought nothing."""
        return self.since >= SETTLED

    def reason(self, progress: Progress) -> Status | None:
        state: Any = progress.state
        grown = state.units > self.most
        self.most, self.since = (state.units, 0) if grown else (self.most, self.since + 1)
        return Status.STOPPED_BY_CALLBACK if self.reached else None


def polished(problem: Problem, result: Result) -> Result:
    """Return the optimum itself, a few Newton steps away; if it is not found, the point so far.

    Blocks that overlap share their features' weights in many ways, and where generation comes
    within the gap depends on rounding; the optimum does not.
    """
    start = WarmStart(result.columns, result.weights, result.intercept)
    stop = RelativeGap(FINISHED) | Iterations(20)
    exact = run(problem, ColumnGeneration(tol=FINISHED), stop, (), start)
    status = exact.status if exact.status is Status.INTERRUPTED else result.status
    passes = result.passes + exact.passes
    seconds = result.seconds + exact.seconds
    if exact.gap > result.gap:
        return replace(result, status=status, passes=passes, seconds=seconds)
    state: GenerationState = result.state
    columns = exact.state.columns
    weights = exact.state.weights
    units = groups_of_columns(problem, columns)
    # Groups are selected whole, zeros included.
    order = np.argsort(columns, kind="stable")
    kept = order[np.isin(units[order], units[weights != 0])]
    columns = columns[kept]
    weights = weights[kept]
    new = [column for column in columns.tolist() if column not in state.found]
    state = replace(
        state,
        columns=columns,
        weights=weights,
        found=state.found | dict.fromkeys(new, result.iterations),
        units=np.unique(units[kept]).size,
    )
    return replace(
        exact,
        status=status,
        tol=result.tol,
        passes=passes,
        seconds=seconds,
        history=result.history,
        iterations=result.iterations,
        state=state,
    )
