"""Refits: the levels of one path, solved over the columns of its pool only.

The pool has the columns of X that are likely to be in use, gathered in memory as a block. A
``Level`` is the run of one strength of the penalty, and a ``Point`` is a solution over the pool. A
master (a solver for few columns in memory) solves each level. Matrices that it may use again, such
as Gram matrices, stay on the block of columns. A reading is one computation of scores A'v.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Scores
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.choose import choose_master, minimized
from atomlearn.core.masters.master import Refit, block_of
from atomlearn.core.paths.pool import Level, Point, Pool
from atomlearn.core.problem.problem import (
    Problem,
    changed,
    negative_gradient,
    objective_at,
    optimal_intercept,
    restrict,
    shrink_inside,
    with_ridge,
)


class Refits:
    """Solves levels over the columns of a pool.

    Parameters
    ----------
    pool : Pool
        The columns; more may join between two calls.
    gap : float
        Relative duality gap to prove over all columns of X; re-fits reach half of it.
    whole : bool
        Whether the pool holds all columns.

    Attributes
    ----------
    block : CachedBlock
        The columns of the pool, with the matrices that masters have computed for them.
    """

    def __init__(self, pool: Pool, gap: float, whole: bool) -> None:
        """Begin without solutions."""
        self.pool = pool
        self.gap = gap
        self.whole = whole
        self.block = CachedBlock(pool.block)
        #: The points of the last two levels, each with the amount (strength) of its level.
        self._last: list[tuple[float, Point]] = []

    def over_pool(self, level: Level) -> Problem:
        """Return the problem of a level, restricted to the columns of the pool."""
        # Columns that joined the pool are added; matrices of the others are kept.
        if self.block.shape[1] < self.pool.columns.size:
            self.block = self.block.grown(self.pool.block)
        # ``inner`` is the level's problem with centered targets, as solvers use it.
        problem = changed(level.inner, deadline=level.deadline)
        return restrict(problem, self.block, self.pool.columns)

    def warm(self, level: Level, start: Point | None) -> tuple[Array, float]:
        """Return a warm start for ``level``: weights over the pool's columns, and the shift.

        It is the point ``start``; None means w = 0. If ``start`` is the point of the last level,
        the weights are extrapolated linearly in the amount of the level from the last two points.
        A weight whose sign would change becomes 0. In the constrained form the weights are scaled
        into the radius.
        """
        weights = np.zeros(self.pool.columns.size)
        if start is None:
            return weights, 0.0
        weights[start.positions] = start.weights
        # From weights w1 and w2 at the amounts a1 and a2 of the last two levels, the weights at
        # amount a are about w2 + step (w2 - w1) with step = (a2 - a) / (a1 - a2).
        if len(self._last) == 2 and start is self._last[1][1]:
            (amount_1, point_1), (amount_2, _) = self._last
            step = (amount_2 - level.inner.regularizer.amount) / (amount_1 - amount_2)
            extrapolated = (1.0 + step) * weights
            extrapolated[point_1.positions] -= step * point_1.weights
            weights = np.where(extrapolated * weights > 0.0, extrapolated, 0.0)
        return shrink_inside(level.inner, self.pool.columns, weights), start.shift

    def ahead(self, levels: list[Level], before: Point | None) -> list[Point]:
        """Return the points at the first of these levels, from one call of their master.

        ``before`` is the point of the level before them, or None. Fewer points, or none, are
        returned if the master cannot solve several levels without certificates
        (``Master.guesses``), or if a number overflows.
        """
        problems = [self.over_pool(level) for level in levels]
        start = self.warm(levels[0], before)
        # Half of the gap is left to the columns that are not in the pool.
        found = choose_master(problems[0]).guesses(problems, *start, 0.5 * self.gap)
        try:
            refits = [_at(*each) for each in zip(problems, found, strict=False)]
        except FloatingPointError:  # each level is then solved by itself
            return []
        return self._points(problems[: len(refits)], refits) if refits else []

    def refitted(self, level: Level, start: Point | None) -> Point:
        """Return the solution of a level over the pool, warm-started from the point ``start``.

        On the first re-fit of a level, the master may return a solution without a certificate
        (``Master.guess``), because a reading of X will certify it. Otherwise the master iterates
        until a duality gap over the pool is proved. After the deadline the start is returned.
        """
        problem = self.over_pool(level)
        weights, shift = self.warm(level, start)
        is_late = problem.deadline.passed
        guess = None
        if level.point is None and not is_late:
            guess = choose_master(problem).guess(problem, weights, shift)
        # ``minimized`` needs an estimate of the objective. That of a start from another level is
        # close; if it is not known, it is computed at the start.
        objective = math.nan if start is None else start.objective
        if guess is not None or is_late or math.isnan(objective):
            refit = _at(problem, guess[:2] if guess else (weights, shift))
            shift = refit.intercept
            objective = refit.objective
        if guess is None and not is_late:
            # Half of the gap is left to the columns that are not in the pool.
            refit = minimized(problem, weights, shift, objective, 0.5 * self.gap)
        return self._points([problem], [refit])[0]

    def remember(self, level: Level, point: Point) -> None:
        """Keep the ``point`` of a level: the next start is extrapolated from the last two."""
        amount = level.inner.regularizer.amount
        others = [each for each in self._last if each[0] != amount]
        self._last = [*others[-1:], (amount, point)]

    def _points(self, problems: list[Problem], refits: list[Refit]) -> list[Point]:
        """Return the points of re-fits over the pool, with one reading of the pool for all scores.

        problems : the problems over the pool, one per level. refits : their solutions.
        """
        duals = [
            negative_gradient(problem, refit.prediction)
            for problem, refit in zip(problems, refits, strict=True)
        ]
        # The scores of the pool at each level. They are not needed if no column may join the pool.
        all_scores: Sequence[Scores] = []
        if not self.whole:
            # A certified re-fit (then the only one) has its scores.
            known_scores = refits[0].scores
            all_scores = [ArrayScores(known_scores)] if known_scores is not None else []
            all_scores = all_scores or problems[0].design.scores_many(np.column_stack(duals))
        points: list[Point] = []
        for problem, refit, dual in zip(problems, refits, duals, strict=True):
            w = refit.weights
            used = np.flatnonzero(w)
            point = Point(used, w[used], refit.intercept, refit.prediction, dual)
            point.objective = refit.objective
            if all_scores:
                # The rating that columns in use have at the optimum (l1: |x_j'v|). Columns of X
                # that are rated nearly as high join the pool.
                scores = with_ridge(problem, all_scores[len(points)], None, w)
                point.reference = problem.regularizer.norm.reference(scores)
            # If the rows are on other machines, the problem has sums over rows in place of samples.
            # Then compute the predictions of the samples; the dual vector is not known.
            if problem.design is not self.block:
                point.prediction = self.block.predict(w)
                point.dual = None
            points.append(point)
        return points


def _at(problem: Problem, start: tuple[Array, float]) -> Refit:
    """Return the point with given weights over the pool and the optimal intercept, as a Refit.

    ``problem`` is restricted to the pool. ``start`` has the weights and a known intercept, from
    which the optimal one is searched. The gap is set to infinity, as it is not computed.
    """
    weights, shift = start
    prediction = block_of(problem).predict(weights)
    shift = optimal_intercept(problem, prediction, shift)
    prediction = prediction + shift
    objective = objective_at(problem, weights, prediction)
    return Refit(weights, shift, prediction, math.inf, objective)
