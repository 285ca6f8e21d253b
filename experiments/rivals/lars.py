"""LARS: the conical re-fit of [V] by the path of its level, from the first atom on, never warm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn.core import is_quadratic
from atomlearn.core.interfaces import Array
from atomlearn.core.masters.master import Master, Refit, block_of, certified
from atomlearn.core.masters.sequential_qp import SequentialQP, check_prices
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class LARS(Master):
    """min over c >= 0 of f(A c) + level p'c for quadratic f, along the path of the level.

    From the level at which the first atom enters down to the one asked for, the solution is
    piecewise linear: atoms enter where their score reaches the level, and leave where their weight
    reaches zero. One of the masters that [V] section 3.2 names; it cannot use a warm start, so it
    goes the whole way each time. Where rounding stops it short, the active set goes on from there.

    Parameters
    ----------
    max_steps : int
        Bound on the atoms that enter or leave in one call.

    References
    ----------
    [V] section 3.2; B. Efron, T. Hastie, I. Johnstone, R. Tibshirani 2004, Least angle regression,
    Annals of Statistics 32.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solvers
    >>> from tests.oracles.sums import solve_sum
    >>> from experiments.rivals import LARS
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> rays = solvers.AtomGeneration(master=LARS())
    >>> solve_sum(X, y, norm="l1", level=1.0, solver=rays).coef.round(6).tolist()
    [2.0, 0.0, -1.0]
    """

    max_steps: int = 10_000

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        prices = check_prices(problem)
        plain = is_quadratic(problem.loss) and not problem.tau and not prices.signed
        if not plain or problem.regularizer.form != "penalized":
            raise TypeError(
                "LARS follows the path of a level over rays: it is for the squared loss in the "
                "penalized form without tau; use SequentialQP"
            )
        block, size = block_of(problem), weights.size
        if not size:
            return SequentialQP().solve(problem, weights, intercept, gap_target)
        zero = certified(problem, np.zeros(size), None, intercept)
        curvature = problem.loss.curvature(problem.y, zero.refit.prediction, problem.weight)
        gram = block.gram(curvature)
        if problem.fit_intercept:
            pulled = block.scores(curvature).full()
            gram = gram - np.outer(pulled, pulled) / float(curvature.sum())
        c, steps = _followed(
            gram, zero.scores, prices.price, problem.regularizer.amount, self.max_steps
        )
        point = certified(problem, c, None, intercept).refit
        point.steps = steps
        if point.gap <= gap_target:
            return point
        refit = SequentialQP().solve(problem, c, point.intercept, gap_target)
        refit.steps += steps
        return refit


def _followed(
    gram: Array, scores: Array, price: Array, level: float, most: int
) -> tuple[Array, int]:
    """Return the weights at the level, and the steps: 1/2 c'Hc - scores'c + level p'c, c >= 0."""
    size, c, steps = price.size, np.zeros(price.size), 0
    ratios = scores / price
    at = float(ratios.max())
    if at <= level:
        return c, 0
    active = [int(ratios.argmax())]
    left = -1
    while steps < most and at > level:
        steps += 1
        inside = np.array(active)
        try:
            move = np.linalg.solve(gram[np.ix_(inside, inside)], price[inside])
        except np.linalg.LinAlgError:
            break
        # Scores less level times price stay 0 inside; outside they change by slope a unit of level.
        reduced = scores - gram[:, inside] @ c[inside] - at * price
        slope = price - gram[:, inside] @ move
        outside = np.setdiff1d(np.arange(size), inside)
        length, entering, leaving = at - level, -1, -1
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(slope > 1e-12, -reduced / slope, np.inf)
            gone = np.where(move < 0, -c[inside] / move, np.inf)
        ahead[inside] = np.inf
        if left >= 0 and reduced[left] > -1e-12 * at:
            ahead[left] = np.inf
        if outside.size and float(ahead.min()) < length:
            entering = int(ahead.argmin())
            length = max(float(ahead[entering]), 0.0)
        if gone.size and float(gone.min()) < length:
            leaving, entering = int(gone.argmin()), -1
            length = max(float(gone[leaving]), 0.0)
        c[inside] = np.maximum(c[inside] + length * move, 0.0)
        at -= length
        left = -1
        if entering >= 0:
            active.append(entering)
        elif leaving >= 0:
            left = active.pop(leaving)
            c[left] = 0.0
            if not active:
                break
        else:
            break
    return c, steps
