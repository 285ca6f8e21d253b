"""Refits: the levels of one path solved over the columns of its pool, with what masters keep."""

from __future__ import annotations

import math

import numpy as np

from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Scores
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.choose import choose_master, minimized
from atomlearn.core.masters.master import block_of
from atomlearn.core.paths.pool import Level, Point, Pool
from atomlearn.core.problem.problem import (
    Problem,
    negative_gradient,
    objective_at,
    optimal_intercept,
    restrict,
    shrink_inside,
    with_deadline,
    with_ridge,
)


class Refits:
    """Solves levels over the columns of a pool.

    Parameters
    ----------
    pool : Pool
    gap : float
        Relative gap to prove over all columns.
    whole : bool
        Whether the pool holds all columns.

    Attributes
    ----------
    block : CachedBlock
        The columns of the pool with what their masters keep.
    """

    def __init__(self, pool: Pool, gap: float, whole: bool) -> None:
        self.pool = pool
        self.gap = gap
        self.whole = whole
        self.block = CachedBlock(pool.block)
        #: The last two re-fits, each with its level.
        self._last: list[tuple[float, Point]] = []

    def over_pool(self, level: Level) -> Problem:
        """Return the problem of a level, restricted to the columns of the pool."""
        if self.block.shape[1] < self.pool.columns.size:
            self.block = self.block.grown(self.pool.block)
        problem = with_deadline(level.inner, level.deadline)
        return restrict(problem, self.block, self.pool.columns)

    def warm(self, level: Level, start: Point | None) -> tuple[Array, float]:
        """Return weights over the pool's columns, feasible at the level, and the shift there."""
        weights = np.zeros(self.pool.columns.size)
        if start is None:
            return weights, 0.0
        weights[start.positions] = start.weights
        if len(self._last) == 2 and start is self._last[1][1]:
            (first, earlier), (second, _) = self._last
            step = (second - level.inner.regularizer.amount) / (first - second)
            further = (1.0 + step) * weights
            further[earlier.positions] -= step * earlier.weights
            weights = np.where(further * weights > 0.0, further, 0.0)
        return shrink_inside(level.inner, self.pool.columns, weights), start.shift

    def refitted(
        self, level: Level, start: Point | None, guess: tuple[Array, float] | None
    ) -> Point:
        """Return the solution of a level over the pool, warm-started from the point ``start``.

        guess : weights and shift of the solution, if they are known.
        """
        whole = self.over_pool(level)
        weights, shift = guess or self.warm(level, start)
        if guess is None and level.point is None and not whole.deadline.passed:
            found = choose_master(whole).guess(whole, weights, shift)
            guess = None if found is None else found[:2]
        weights, shift = guess or (weights, shift)
        # Nearly that of this level: a start that was proved at another level.
        objective = math.nan if start is None else start.objective
        scores: Scores | None = None
        if guess is not None or whole.deadline.passed or math.isnan(objective):
            prediction = block_of(whole).predict(weights)
            shift = optimal_intercept(whole, prediction, shift)
            prediction = prediction + shift
            objective = objective_at(whole, weights, prediction)
        if guess is None and not whole.deadline.passed:
            # Half of the gap is left to the columns that are not in the pool.
            refit = minimized(whole, weights, shift, objective, 0.5 * self.gap)
            weights = refit.weights
            shift = refit.intercept
            prediction = refit.prediction
            objective = refit.objective
            scores = None if refit.scores is None else ArrayScores(refit.scores)
        dual = negative_gradient(whole, prediction)
        used = np.flatnonzero(weights)
        point = Point(used, weights[used], shift, prediction, dual, 0.0, objective)
        if not self.whole:  # columns may join the pool
            scores = with_ridge(whole, scores or whole.design.scores(dual), None, weights)
            point.reference = whole.regularizer.norm.reference(scores)
        amount = level.inner.regularizer.amount
        others = [each for each in self._last if each[0] != amount]
        self._last = [*others[-1:], (amount, point)]
        if whole.design is not self.block:  # its predictions are not those of the samples
            point.prediction = self.block.predict(weights)
            point.dual = None
        return point
