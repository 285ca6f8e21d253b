"""Re-fits of a path: the same problem over a pool of columns, from level to level.

Two tiers: a working set of columns with their Gram matrix and its factor, which the master keeps
from level to level, inside the pool, all of which is priced after every re-fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn._kernels import ActiveFactor
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Columns, Scores
from atomlearn.core.masters.choose import default_master
from atomlearn.core.masters.sign_pivoting import l1_quadratic
from atomlearn.core.paths.pool import Pool
from atomlearn.core.problem.pricing import Pricing, priced
from atomlearn.core.problem.problem import Problem

#: A re-fit whose columns will move again goes to this part of the gap before it.
LOOSE = 1e-3


@dataclass(slots=True)
class Point:
    """A solution over the pool, not yet priced over X.

    positions, weights : in the pool, none of the weights is zero; shift : the constant in
    ``prediction`` = A w + shift, A being the pool's columns; dual : v = -f'(prediction);
    reference : the norm's reference of the pool's scores; gap : relative, over the pool alone.
    """

    positions: Columns
    weights: Array
    shift: float
    prediction: Array
    dual: Array
    reference: float
    gap: float


class PoolRefit:
    """Solves the problems of one path over the pool, from a working set of its columns.

    ``at`` are the positions of the working set in the pool, ``block`` holds its columns: weights
    here are of these, in this order.

    Parameters
    ----------
    pool : Pool
    tolerance : float
        Relative gap that is asked of the whole; a re-fit goes to ``PART`` of it over the pool.
    cheap : bool
        Whether a re-fit takes less than a reading, as with l1 penalties.
    """

    PART = 0.5

    def __init__(self, pool: Pool, tolerance: float, cheap: bool) -> None:
        self.pool, self.cheap = pool, cheap
        self.master = default_master()
        self.target = self.PART * tolerance
        self.at: Columns = np.zeros(0, dtype=np.int64)
        self.block = CachedBlock(pool.block.take(self.at))
        self._last: tuple[Array, Scores] = (np.zeros(0), ArrayScores(np.zeros(0)))

    def solve(self, problem: Problem, warm: Point | None) -> Point:
        """Return the solution over the pool, from a point at another level or an earlier one."""
        weights, shift, prediction = self._start(problem, warm)
        price, last = self._priced(problem, weights, prediction), math.inf
        while True:  # each round lets columns in, or halves the gap
            certificate = price.certificate
            done = certificate.objective <= problem.negligible and last < math.inf
            if done or problem.deadline.passed or certificate.relative_gap <= self.target:
                break
            entering = self._entering(price)
            if not entering.size and certificate.gap >= 0.5 * last:
                break
            last = certificate.gap
            weights, shift, prediction = self._refit(problem, entering, weights, shift, price)
            price = self._priced(problem, weights, prediction)
        return self._point(price, weights, shift)

    def resumed(self, problem: Problem, known: Point) -> Point:
        """Return a point that was known before, with what the pool says of it now."""
        weights, shift, prediction = self._start(problem, known)
        return self._point(self._priced(problem, weights, prediction), weights, shift)

    def _start(self, problem: Problem, warm: Point | None) -> tuple[Array, float, Array]:
        """Return weights of the working set, constant and prediction of the warm start."""
        self._without_idle(warm, self.free(problem))
        weights, shift = np.zeros(self.at.size), 0.0
        if warm is not None:
            where = np.full(self.pool.size, -1, dtype=np.int64)
            where[self.at] = np.arange(self.at.size)
            missing = warm.positions[where[warm.positions] < 0]
            where[missing] = self.at.size + np.arange(missing.size)
            self._include(missing)
            weights, shift = np.zeros(self.at.size), warm.shift
            weights[where[warm.positions]] = warm.weights
        weights = problem.inside(self.pool.columns[self.at], weights)
        linear = self.block.dot(weights)
        shift = problem.optimal_intercept(linear, shift)
        return weights, shift, linear + shift

    def _include(self, positions: Columns) -> None:
        if positions.size:
            self.block = self.block.append(self.pool.block.take(positions))
            self.at = np.concatenate([self.at, positions])

    def _refit(
        self, problem: Problem, entering: Columns, weights: Array, shift: float, price: Pricing
    ) -> tuple[Array, float, Array]:
        self._include(entering)
        weights = np.concatenate([weights, np.zeros(entering.size)])
        restricted = problem.restricted_to(self.block, self.pool.columns[self.at])
        enough = 0.3 * self.target * abs(price.certificate.objective)
        if entering.size:
            enough = max(enough, LOOSE * price.certificate.gap)
        refit = self.master.solve(restricted, weights, shift, max(enough, restricted.negligible))
        return refit.weights, refit.intercept, refit.prediction

    def _entering(self, price: Pricing) -> Columns:
        """Return positions of the pool that want in and are not in the working set."""
        norm = price.problem.regularizer.norm
        n_used = int(np.count_nonzero(price.weights))
        free = self.free(price.problem)
        best = norm.best_columns(price.scores, max(200, free, 2 * n_used if free else n_used))
        return price.entering(best)

    def free(self, problem: Problem) -> int:
        """Return how many columns cost the master no more than those in use among them."""
        return self.master.candidates_for_free(problem)

    def _priced(self, problem: Problem, weights: Array, prediction: Array) -> Pricing:
        """Return the pricing of a point over the pool, which takes a few percent of a pass."""
        whole = problem.restricted_to(self.pool.block, self.pool.columns)
        v = problem.negative_gradient(prediction)
        return priced(whole, self.at, weights, prediction, v, self._scores(v))

    def _scores(self, v: Array) -> Scores:
        """Return the pool's scores of a vector; a level starts where the one before ended."""
        before, scores = self._last
        if scores.n_columns != self.pool.size or not np.array_equal(before, v):
            scores = ArrayScores(self.pool.block.transpose_dot(v))
            self._last = v, scores
        return scores

    def _without_idle(self, warm: Point | None, free: int) -> None:
        """Let go of columns without weight once they are most of the working set."""
        used = 0 if warm is None else warm.positions.size
        if self.at.size <= max(4 * used + 1000, 2 * free + 2 * used if free else 0):
            return
        keep = np.zeros(0, dtype=np.int64)
        if warm is not None:
            keep = np.flatnonzero(np.isin(self.at, warm.positions))
        self.block = self.block.take(keep)
        self.at = self.at[keep]
        self._pruned()

    def _pruned(self) -> None:
        """Forget what was kept of the working set by position."""

    def _point(self, price: Pricing, weights: Array, shift: float) -> Point:
        used = np.flatnonzero(weights)
        norm = price.problem.regularizer.norm
        return Point(
            self.at[used],
            weights[used],
            shift,
            price.prediction,
            price.dual,
            norm.reference(price.scores),
            price.certificate.relative_gap,
        )


class SignRefit(PoolRefit):
    """Re-fits of quadratics with l1 penalties: a few exact systems for each level.

    The Gram matrix of the working set and a factor of it are kept from level to level.
    """

    #: Columns of the working set beyond which the Gram matrix costs more than it saves.
    MOST = 5000

    def __init__(self, pool: Pool, tolerance: float) -> None:
        super().__init__(pool, tolerance, cheap=True)
        self._factor = ActiveFactor()
        self._curvature: Array | None = None

    def _refit(
        self, problem: Problem, entering: Columns, weights: Array, shift: float, price: Pricing
    ) -> tuple[Array, float, Array]:
        if self._are_too_many(problem, entering):
            return super()._refit(problem, entering, weights, shift, price)
        self._include(entering)
        weights = np.concatenate([weights, np.zeros(entering.size)])
        weights = self._of_model(problem, weights, price)
        linear = self.block.dot(weights)
        shift = problem.optimal_intercept(linear, shift)
        return weights, shift, linear + shift

    def _are_too_many(self, problem: Problem, entering: Columns) -> bool:
        return self.at.size + entering.size > self.MOST

    def _of_model(self, problem: Problem, weights: Array, price: Pricing) -> Array:
        """Return the minimum of the quadratic model at a point, which has the kept curvature."""
        if self._curvature is None:
            z = price.prediction
            self._curvature = problem.loss.curvature(problem.y, z, problem.weight)
            self._factor.forget()
        free = problem.loss.free
        basis, rank = None, int(problem.fit_intercept)
        if free is not None:
            basis, rank = free.basis, free.basis.shape[1]
        growing = self.block.growing_gram(self._curvature, problem.fit_intercept, basis)
        [found] = l1_quadratic(
            growing.matrix,
            -price.scores.at(self.at),
            self._prices(price)[self.at],
            weights,
            np.array([problem.regularizer.amount]),
            ridge=problem.tau,
            factor=self._factor,
            most=int(np.count_nonzero(problem.weight)) - 1 - rank,
        )
        return np.array(found)

    def _entering(self, price: Pricing) -> Columns:
        """Return positions of the pool that want in, the best ones first."""
        ratings = np.abs(price.scores.full()) / self._prices(price)
        ratings[self.at] = 0.0
        found = np.flatnonzero(ratings > price.problem.regularizer.amount * (1.0 + 1e-12))
        n_used = int(np.count_nonzero(price.weights))
        return found[np.argsort(-ratings[found], kind="stable")][: max(50, n_used // 4)]

    def _prices(self, price: Pricing) -> Array:
        prices = price.problem.regularizer.norm.l1_weights(self.pool.size)
        assert prices is not None
        return prices

    def _pruned(self) -> None:
        self._factor.forget()


def refit_of(problem: Problem, pool: Pool, tolerance: float) -> PoolRefit:
    """Return what re-fits the levels of this problem."""
    regularizer, fixed = problem.regularizer, problem.plain_loss
    signed = (
        fixed.coupled == 1
        and (problem.loss.free is None or problem.loss.free.separable)
        and regularizer.form == "penalized"
        and problem.metric is None
        and regularizer.norm.l1_weights(problem.design.shape[1]) is not None
        and pool.block.bare.keeps_gram
    )
    if signed and fixed.is_quadratic:
        return SignRefit(pool, tolerance)
    return PoolRefit(pool, tolerance, cheap=signed)
