"""Which problems can share readings between levels, and the task that solves their levels."""

from __future__ import annotations

from collections.abc import Callable

from atomlearn.core.interfaces import Array, Scores, WarmStart
from atomlearn.core.paths.ends import Reached
from atomlearn.core.paths.pool import Pool
from atomlearn.core.paths.settings import Settings
from atomlearn.core.paths.shared_levels import SharedLevels
from atomlearn.core.problem.problem import Problem
from atomlearn.core.solvers.column_generation import ColumnGeneration
from atomlearn.core.solvers.schedule import Task
from atomlearn.core.solvers.steps import SteppedLevels


def shares_levels(problem: Problem, settings: Settings) -> bool:
    """Return whether levels of the problem can be guessed, solved and priced together.

    Not where another solver was chosen; not where the norm, or the one over lifted coordinates,
    rates no columns; not where the data is read once for each vector.
    """
    norm = problem.regularizer.norm
    plain = settings.solver is None or settings.solver == ColumnGeneration(tolerance=settings.gap)
    return (
        plain
        and problem.loss.bare.coupled <= 1
        and problem.loss.smoothed(1.0) is None  # kinks, which take a row of smooth problems
        and problem.metric is None
        and problem.design.reads_at_once
        and norm.solver(settings.gap) is None
        and _rates_columns(problem)
    )


def _rates_columns(problem: Problem) -> bool:
    norm = problem.regularizer.norm
    lift = norm.lift(problem.design.shape[1])
    if lift and problem.tau:
        return False  # refused, with what to do about it, by whoever solves one level
    norm = lift.norm if lift else norm
    return norm.over_columns and norm.solver(0.0) is None and norm.rates_columns


def pool_of(problem: Problem) -> Pool:
    """Return the empty pool of a problem's paths, in the coordinates that they are solved in."""
    return Pool(problem.entered(True)[0])


def task_of(
    problem: Problem,
    levels: Array,
    settings: Settings,
    pool: Pool | None = None,
    *,
    warm: WarmStart | None = None,
    zero: Scores | None = None,
    reached: Reached | None = None,
    last: Callable[[], int | None] | None = None,
) -> Task:
    """Return the task that solves a problem at the levels, in their order.

    Levels share readings where the problem allows that and there are several of them.
    ``pool`` : see ``pool_of``; ``zero``, ``reached``, ``last`` : see ``SharedLevels``.
    """
    if warm is None and len(levels) > 1 and shares_levels(problem, settings):
        pool = pool_of(problem) if pool is None else pool
        return SharedLevels(problem, levels, settings, pool, zero, reached, last)
    problem = problem.until(problem.deadline.sooner(settings.deadline))
    return SteppedLevels(
        problem,
        levels.tolist(),
        settings.solver_for(problem),
        settings.rules,
        settings.observers_of_runs(),
        warm,
        reached,
        settings.search,
    )
