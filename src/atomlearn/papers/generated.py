"""Feature generation until the requested number of features is selected, or to the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn.core import (
    ColumnGeneration,
    Observer,
    Problem,
    Progress,
    Result,
    Settings,
    Status,
    StoppingRule,
)
from atomlearn.papers.feature_generation import (
    FeatureGeneration,
    GenerationState,
    groups_of_columns,
)

#: After SETTLED rounds without a new feature, column generation computes the optimum, to the
#: relative gap FINISHED.
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
    finish: float = FINISHED,
) -> Result:
    """Return the result of feature generation until ``wanted`` features are selected.

    The optimum may have fewer features; then it is returned. Feature generation converges slowly
    near the optimum, so after SETTLED rounds without a new feature, column generation computes it.

    Parameters
    ----------
    problem : Problem
        The loss with the squared k-support norm, k the number of features of a block.
    limit : int or None
        Number of features at which the solver stops. None: no limit, because all features may be
        selected; the run then ends at the optimum.
    wanted : int
        The requested number of features (or groups).
    tol, max_iter : float, int
        Relative gap, and number of rounds, at which the run ends.
    observers : sequence of Observer
        Called after each round.
    also_stop : StoppingRule, optional
        A further rule that ends the run.
    selected_tol : float, optional
        Relative gap of the last subproblem, over the selected features only.
    solver : FeatureGeneration, optional
        The solver, with the stopping rules of the paper if they are used.
    finish : float
        Relative gap of the optimum.

    Returns
    -------
    Result
    """
    solver = replace(solver or FeatureGeneration(), n_features=limit, tol=selected_tol)
    settings = Settings(tol, max_iter, solver, also_stop, tuple(observers))
    # Select features. Then compute the optimum, if the selection no longer grows or has no limit.
    settled = _Settled()
    until = settled if also_stop is None else also_stop | settled
    result = replace(settings, stop=until).run(problem)
    if not settled.reached and not (limit is None and result.converged):
        return result
    optimum = polished(problem, result, finish)
    fits_limit = optimum.state.units <= wanted
    interrupted = optimum.status is Status.INTERRUPTED
    if fits_limit and (interrupted or optimum.relative_gap <= tol):
        return optimum if interrupted else replace(optimum, status=Status.CONVERGED, tol=tol)
    if interrupted or problem.deadline.passed:
        status = optimum.status if interrupted else Status.TIME_LIMIT
        return replace(result, status=status, passes=optimum.passes, seconds=optimum.seconds)
    # The optimum has more features than wanted, so generation runs again without the early stop.
    generation = settings.run(problem)
    passes = optimum.passes + generation.passes
    seconds = optimum.seconds + generation.seconds
    return replace(generation, passes=passes, seconds=seconds)


class _Settled(StoppingRule):
    """Stops after SETTLED successive rounds without a new feature.

    ``most_features`` is the largest number of features so far, and ``rounds`` the number of rounds
    since it last rose.
    """

    def __init__(self) -> None:
        """Begin with no feature and no round."""
        self.most_features = self.rounds = 0

    @property
    def reached(self) -> bool:
        """Whether the last SETTLED rounds added no feature."""
        return self.rounds >= SETTLED

    def reason(self, progress: Progress) -> Status | None:
        """Count a round of ``progress``; return the status that stops the run, or None."""
        # Restart the count whenever the number of selected features rises.
        state: Any = progress.state
        if state.units > self.most_features:
            self.most_features = state.units
            self.rounds = 0
        else:
            self.rounds += 1
        return Status.STOPPED_BY_CALLBACK if self.reached else None


def polished(problem: Problem, result: Result, finish: float = FINISHED) -> Result:
    """Return the optimum by column generation to the relative gap ``finish``, begun at ``result``.

    ``problem`` is the problem of ``result``, a result of feature generation. The last point of
    feature generation depends on rounding, because overlapping blocks can divide the weight of a
    feature in many ways; the optimum does not. If column generation does not lower the gap,
    ``result`` is returned.
    """
    start = result.warm_start()
    exact = Settings(finish, 20, ColumnGeneration(tol=finish)).run(problem, start)
    status = exact.status if exact.status is Status.INTERRUPTED else result.status
    passes = result.passes + exact.passes
    seconds = result.seconds + exact.seconds
    if exact.gap > result.gap:
        return replace(result, status=status, passes=passes, seconds=seconds)
    state: GenerationState = result.state
    columns = exact.state.columns
    weights = exact.state.weights
    groups = groups_of_columns(problem, columns)
    # Groups are selected as a whole, including their columns with weight zero.
    order = np.argsort(columns, kind="stable")
    kept = order[np.isin(groups[order], groups[weights != 0])]
    columns = columns[kept]
    weights = weights[kept]
    # Features that only the optimum has count as found in the last round.
    new = [column for column in columns.tolist() if column not in state.found]
    state = replace(
        state,
        columns=columns,
        weights=weights,
        found=state.found | dict.fromkeys(new, result.iterations),
        units=np.unique(groups[kept]).size,
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
