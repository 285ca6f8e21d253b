"""QuadraticDescent: least squares with an l1 penalty over thousands of packed columns.

Genotypes are stored in two bits per entry, so that thousands of columns need little memory. In
float64 the columns, their Gram matrix and its factor would be the largest arrays of a fit. Each
round minimizes the objective over the columns in use and those that violate optimality the most, by
coordinate descent on

    1/2 d'Hd + slope'd + sum_j price_j |w_j|,   d = w - w_k,   H = A'S(I - P)A,

with half of H stored in float32. A are the columns, S the sample weights, w_k the point at which
the round begins, and P the projection on the free (unpenalized) columns in the metric of S. The
slopes at w_k and the duality gap are computed from the columns in float64. So the next round
corrects the errors that rounding of H causes, as in iterative refinement.
[Friedman, Hastie, Tibshirani 2010; Higham 2002, chapter 12]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn._kernels import descend_quadratic
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.data.half_gram import HalfGram
from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.losses.free_columns import free_columns, plain_loss
from atomlearn.core.masters.master import Master, Refit, block_of, certified, finished, toward
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.sequential_qp import check_prices, prices_of
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem

#: Accuracy of a round. The gap that a round aims at is the target, but at least SHARE^2 times the
#: gap before the round: more accuracy would be lost when further columns join. The coordinate
#: descent ends with a sweep that changes the slopes by at most SHARE times that gap.
SHARE = 0.2


#: In each round at least this number of columns may join those in use.
JOINING = 500


def can_descend(problem: Problem) -> bool:
    """Return whether the problem is l1-penalized least squares over packed columns.

    Packed columns take less than a byte per entry. Free columns must not be sparse.
    """
    free = free_columns(problem.loss)
    return (
        problem.design.traits.bytes_an_entry < 1.0
        and problem.regularizer.form == "penalized"
        and problem.metric is None
        and is_quadratic(plain_loss(problem.loss))
        and (free is None or not free.is_sparse)
        and plain_loss(problem.loss).coupled == 1
        and prices_of(problem) is not None
    )


@dataclass(frozen=True, slots=True)
class QuadraticDescent(Master):
    """Coordinate descent on a float32 model of least squares, with exact slopes.

    A round costs two products with the block, O(n k) for each column that is new among the k in
    use, and O(k) for each coefficient that moves in a sweep. ``Refit.steps`` counts rounds.

    References
    ----------
    J. Friedman, T. Hastie, R. Tibshirani 2010, Regularization paths for generalized linear models
    via coordinate descent. N. J. Higham 2002, Accuracy and stability of numerical algorithms.
    """

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Solve the restricted ``problem`` to a duality gap of ``gap_target``; see Master.

        The warm start is at ``weights`` (m,) and ``intercept``; the best point found is returned.
        """
        prices = check_prices(problem)
        block = CachedBlock.of(block_of(problem))
        free = free_columns(problem.loss)
        basis = None if free is None else free.basis
        price = problem.regularizer.amount * prices.price
        feasible = prices.feasible(problem, weights)
        best = certified(problem, feasible, None, intercept)
        steps = 0
        while best.refit.gap > gap_target and steps < TUNING.inner_steps:
            if problem.deadline.use_step():
                break
            steps += 1
            # ``columns`` are the needed ones, and those of earlier rounds whose Gram matrix is
            # kept.
            w = best.refit.weights
            slope = problem.tau * w - best.scores
            needed = _needed(w, np.abs(slope) - price)
            columns, gram = block.growing_part(
                needed, problem.weight, basis, problem.fit_intercept, HalfGram
            )
            minimizer = np.zeros(w.size)
            minimizer[columns], _ = descend_quadratic(
                gram.strips,
                slope[columns],
                price[columns],
                w[columns],
                ridge=problem.tau,
                signed=prices.signed,
                tolerance=SHARE * max(gap_target, SHARE**2 * best.refit.gap) / best.refit.objective,
            )
            following = toward(problem, best, minimizer)
            if following is None:
                break
            best = following
        best.refit.steps = steps
        return finished(best.refit, SemismoothNewton(), problem, gap_target)


def _needed(weights: Array, excess: Array) -> Columns:
    """Return the columns of nonzero weight, and those of weight zero that violate optimality most.

    weights : (m,). excess : (m,), by how much each |slope| exceeds its price, the penalty weight
    times the level. Far from the solution, many more columns violate optimality than the solution
    uses, and the Gram matrix grows with the square of their number. So the number of columns that
    join is at most half the number in use, or ``JOINING`` if that is more.
    """
    used = np.flatnonzero(weights)
    joining = np.flatnonzero((weights == 0.0) & (excess > 0.0))
    most = max(JOINING, used.size // 2)
    if joining.size > most:
        joining = joining[np.argpartition(-excess[joining], most)[:most]]
    return np.union1d(used, joining)
