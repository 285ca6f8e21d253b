"""Shared: which paths can share readings, and paths in lifted coordinates among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Lift, Scores
from atomlearn.core.paths.ends import Reached
from atomlearn.core.paths.guess import reading_work
from atomlearn.core.paths.pool import Pool
from atomlearn.core.paths.readings import Answer, Asked, Outcome, Path
from atomlearn.core.paths.settings import Settings
from atomlearn.core.paths.speculation import Speculation, guessed
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.column_generation import ColumnGeneration

#: Steps that a level must be allowed for them not to matter.
FEW_STEPS = 30


def speculates(problem: Problem, n_levels: int, settings: Settings) -> bool:
    """Return whether levels of the problem can be guessed, solved and priced together.

    Not where a solver or rules were chosen, which are of single levels; not where the norm, or the
    one over lifted coordinates, rates no columns; not where the data is read once for each vector.
    """
    norm = problem.regularizer.norm
    plain = settings.solver is None or settings.solver == ColumnGeneration(tolerance=settings.gap)
    return (
        n_levels > 1
        and plain
        and settings.stop is None
        and not settings.observers
        and settings.max_iter >= FEW_STEPS
        and problem.loss.bare.coupled <= 1
        and problem.loss.smoothed(1.0) is None  # kinks, which take a row of smooth problems
        and problem.metric is None
        and problem.design.passes_of_many(2) < 2.0
        and norm.solver(settings.gap) is None
        and _guesses(problem)
    )


def _guesses(problem: Problem) -> bool:
    norm = problem.regularizer.norm
    lift = norm.lift(problem.design.shape[1])
    if lift and problem.tau:
        return False  # refused, with what to do about it, by whoever solves one level
    norm = lift.norm if lift else norm
    return norm.over_columns and norm.solver(0.0) is None and norm.rates_columns


def pool_of(problem: Problem) -> Pool:
    """Return the empty pool of a problem's paths, in the coordinates that they are solved in."""
    return Pool(problem.entered(True)[0])


def speculated(
    problem: Problem,
    levels: NDArray[np.float64],
    settings: Settings,
    pool: Pool,
    zero: Scores | None = None,
    reached: Reached | None = None,
    last: Callable[[], int | None] | None = None,
) -> Path:
    """Solve a problem at the levels, in their order; yields what it asks of the data.

    ``pool`` : see ``pool_of``; ``zero`` : the scores at w = 0, where they are known already;
    ``reached`` : whether a level is the last one; ``last`` : where other paths have ended it.
    """
    inner, lift = problem.entered(True)
    path = Speculation(inner, levels, settings, pool, reading_work(problem.design))
    path.last = last
    if lift is None:
        return guessed(path, zero, reached)
    end = None if reached is None else _lowered_end(reached, problem, lift)
    zero = None if zero is None else lift.expansion.scores(zero)
    return _lowered(guessed(path, zero, end), lift)


def _lowered(path: Path, lift: Lift) -> Path:
    """Go a path over u, w = L u: it is sent L'z, and its results are those of w.

    So paths over features and over lifted coordinates share a reading of X.
    """
    answer: Answer | None = None
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            asked = path.send(answer) if interrupt is None else path.throw(interrupt)
        except StopIteration as end:
            outcome: Outcome = end.value
            results = [result.lowered(lift) for result in outcome.results]
            return Outcome(results, outcome.interrupted)
        try:
            # Large scores of u are not those of w: all of them are asked for.
            answer = yield None if asked is None else Asked(asked.vectors, None)
        except KeyboardInterrupt as pressed:
            interrupt = pressed
        else:
            if answer is not None:
                lifted = [lift.expansion.scores(z) for z in answer.scores]
                answer = Answer(lifted, answer.vectors)


def _lowered_end(reached: Reached, problem: Problem, lift: Lift) -> Reached:
    """Return what asks an end of the problem over w, when it is asked of that over u."""

    def asked(inner: Problem, result: Result) -> bool:
        regularizer = replace(problem.regularizer, amount=inner.regularizer.amount)
        return reached(replace(problem, regularizer=regularizer), result.lowered(lift))

    return asked
