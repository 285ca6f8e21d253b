"""Re-fits of a path: the same problem over a pool of columns, from level to level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.masters.choose import choose_master
from atomlearn.core.masters.master import block_of
from atomlearn.core.paths.pool import Pool
from atomlearn.core.problem.problem import (
    Problem,
    negative_gradient,
    negligible_objective,
    objective_at,
    optimal_intercept,
    restrict,
    shrink_inside,
    with_ridge,
)


@dataclass(slots=True)
class PoolPoint:
    """A solution over the pool, not yet priced over X.

    positions, weights : in the pool, none of the weights is zero; shift : the constant in
    ``prediction`` = A w + shift, A being the pool's columns; dual : v = -f'(prediction), None
    where it has to be asked for; reference : the norm's reference of the pool's scores.
    """

    positions: Columns
    weights: Array
    shift: float
    prediction: Array
    dual: Array | None
    reference: float


class PoolRefit:
    """Solves the problems of one path over the pool, whose block keeps what its master knows.

    Parameters
    ----------
    pool : Pool
    tolerance : float
        Relative gap that is asked of the whole; half of it is left over the pool.
    """

    def __init__(self, pool: Pool, tolerance: float) -> None:
        self.pool = pool
        self.target = 0.5 * tolerance
        self.block = CachedBlock(pool.block)

    def solve(self, problem: Problem, warm: PoolPoint | None, own: bool = False) -> PoolPoint:
        """Return the solution over the pool, from a point at another level, or of its ``own``."""
        pool = self.pool
        if self.block.shape[1] < pool.columns.size:
            self.block = self.block.grown(pool.block)
        weights = np.zeros(pool.columns.size)
        shift = 0.0
        if warm is not None:
            weights[warm.positions] = warm.weights
            shift = warm.shift
        weights = shrink_inside(problem, pool.columns, weights)
        whole = restrict(problem, self.block, pool.columns)
        guess = None
        if not (own or problem.deadline.passed):
            guess = choose_master(whole).guess(whole, weights, shift)
        if guess is not None:
            weights, shift, _ = guess
        linear = block_of(whole).dot(weights)
        shift = optimal_intercept(problem, linear, shift)
        if guess is None:
            return self._solved(whole, weights, shift, linear + shift)
        return self._point(whole, weights, shift, linear + shift)

    def _solved(self, whole: Problem, weights: Array, shift: float, prediction: Array) -> PoolPoint:
        """Return the solution to a part of the gap, from these weights."""
        objective = objective_at(whole, weights, prediction)
        before = math.inf
        while not whole.deadline.passed:
            enough = max(self.target * objective, negligible_objective(whole))
            refit = choose_master(whole).solve(whole, weights, shift, enough)
            weights = refit.weights
            shift = refit.intercept
            prediction = refit.prediction
            objective = refit.objective
            # The target falls with the objective; rounding may end the way to it.
            if refit.gap <= self.target * objective or refit.gap > 0.5 * before:
                break
            before = refit.gap
        return self._point(whole, weights, shift, prediction)

    def _point(self, whole: Problem, weights: Array, shift: float, prediction: Array) -> PoolPoint:
        v = negative_gradient(whole, prediction)
        used = np.flatnonzero(weights)
        scores = whole.design.scores(v)
        reference = whole.regularizer.norm.reference(with_ridge(whole, scores, None, weights))
        if whole.design is self.block:
            return PoolPoint(used, weights[used], shift, prediction, v, reference)
        # It has predictions of its own.
        return PoolPoint(used, weights[used], shift, self.block.dot(weights), None, reference)
