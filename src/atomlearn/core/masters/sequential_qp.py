"""Sequential quadratic programming on rays and for l1: the active-set QP for every smooth loss.

[V] leaves smooth losses to future work, by sequential quadratic programming. At a point c with
optimal intercept the model of f is its second-order expansion with H = A'DA, D = diag(f''), less
what the intercept takes up; R is kept as it is. The active-set QP minimises the model over c >= 0,
and a line search on the true objective (Armijo) decides how far to go there. Kinks of the loss's
derivative (squared hinge) make it a generalized Newton method.

Where the model is of no use, because curvatures vanish or change too fast, D gets a multiple of
the largest curvature the loss can have: at the full multiple the model lies above f everywhere, so
full steps descend. The multiple is zero unless a step was cut short, and fades afterwards.

For the losses and the columns that it knows, a kernel makes all steps of a call, and keeps the
Hessian of the columns in use for the next; what is here in Python proves where it ended, and goes
on from there where that is not enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atomlearn._kernels import QPStatus, newton_qp
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block, Columns, Master, Refit
from atomlearn.core.masters.active_set import (
    ActiveSetQP,
    Prices,
    check_prices,
    feasible,
    model_minimum,
    model_terms,
    pivots_at_a_time,
    priced_point,
    slope_of,
    with_ridge,
)
from atomlearn.core.masters.candidate import Candidate, block_of, finished
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class SequentialQP(Master):
    """Re-fit rays, or weights under l1, for any smooth loss: Newton models, a QP, a search.

    A step costs a Gram matrix of the columns in use and those that want in, O(n k^2), the pivots
    of its QP, and a few products with the block. The squared loss is left to ``ActiveSetQP``.
    ``Refit.steps`` counts Newton steps.

    Parameters
    ----------
    batch : int
        Columns that may enter between two solves of the QP.
    max_steps : int
        Bound on Newton steps; then the best point is returned with its gap.
    max_pivots : int
        Bound on pivots of one QP.
    fallback : Master, optional
        Goes on from the best point where rounding ends the steps before the target.

    References
    ----------
    [V] M. Vinyes, G. Obozinski 2017, section 3.2, for the squared loss.
    J. Nocedal, S. J. Wright 2006, Numerical Optimization, chapter 18.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.Nonnegative(norms.L1()), "penalized", 0.1)
    >>> restricted = problem.Problem.build(block, [1.0, -1.0], losses.Logistic(), regularizer)
    >>> refit = masters.SequentialQP().solve(restricted, np.zeros(2), 0.0, 1e-10)
    >>> refit.weights.round(4)
    array([2.1972, 0.    ])
    """

    batch: int = 1
    max_steps: int = 500
    max_pivots: int = 10_000
    fallback: Master | None = None

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        refit = self._solve(problem, weights, intercept, gap_target)
        if self.fallback is None or not weights.size:
            return refit
        return finished(refit, self.fallback, problem, gap_target)

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """Return where the kernel ends, on problems that it solves before Python has begun."""
        n_samples, size = problem.design.shape
        quick = 0 < n_samples * size <= TUNING.kernel_entries
        quick &= n_samples * size * size <= TUNING.kernel_work and not problem.deadline.passed
        if not (quick and problem.loss.in_kernel and problem.metric is None):
            return None
        return self._steps(problem, block_of(problem).dense(), weights, intercept, 0.0)

    def _steps(
        self, problem: Problem, columns: Any, weights: Array, intercept: float, gap: float
    ) -> tuple[Array, float, int]:
        """Return where the kernel ends, which it thinks is within the gap, and its steps."""
        prices = check_prices(problem)
        level, coupling, radius = model_terms(problem.regularizer)
        intercept *= problem.fit_intercept  # the kernel would keep the one that it is given
        return newton_qp(
            columns, problem.y, problem.weight, problem.loss.in_kernel,
            feasible(problem, prices, weights), intercept, price=prices.price,
            slopes=problem.loss.kernel_slopes, level=level, coupling=coupling, ridge=problem.tau,
            radius=radius, signed=prices.signed, intercept=problem.fit_intercept, gap=gap,
            batch=self.batch, most=min(self.max_steps, TUNING.inner_steps),
            most_columns=TUNING.kernel_columns, work=TUNING.model_work_of_columns,
            seconds=problem.deadline.left, kept=CachedBlock.of(block_of(problem)).hessian,
        )  # fmt: skip

    def _by_kernel(
        self, problem: Problem, weights: Array, intercept: float, gap_target: float
    ) -> Refit | None:
        """Return where the kernel ends, priced, where it knows the loss and the columns."""
        columns = kernel_columns(problem)
        if columns is None or problem.deadline.passed:
            return None
        prices, steps, best = check_prices(problem), 0, None
        # What it thinks is the gap leaves out terms of third order.
        for target in (gap_target, 1e-3 * gap_target):
            weights, intercept, more = self._steps(problem, columns, weights, intercept, target)
            steps += more
            linear = block_of(problem).dot(weights)
            best = priced_point(problem, prices, weights, linear, intercept).refit
            best.steps = steps
            if best.gap <= gap_target or not more or problem.deadline.passed:
                break
        return best

    def _solve(
        self, problem: Problem, weights: Array, intercept: float, gap_target: float
    ) -> Refit:
        prices, begun = check_prices(problem), 0
        reached = self._by_kernel(problem, weights, intercept, gap_target)
        if reached is not None:
            if reached.gap <= gap_target or problem.deadline.passed:
                return reached
            weights, intercept, begun = reached.weights, reached.intercept, reached.steps
        if problem.loss.is_quadratic and weights.size <= TUNING.columns_together:
            quadratic = ActiveSetQP(self.batch, self.max_pivots)
            refit = quadratic.solve(problem, weights, intercept, gap_target)
            refit.steps += begun
            return refit
        inside = feasible(problem, prices, weights)
        best = priced_point(problem, prices, inside, block_of(problem).dot(inside), intercept)
        damping, idle, steps = 0.0, 0, begun
        while best.refit.gap > gap_target and weights.size and idle < TUNING.damped_patience:
            if steps >= self.max_steps or problem.deadline.passed:
                break
            steps += 1
            trial, length = self._step(problem, prices, best, damping)
            progress = trial is not None and trial.improves(best)
            halved = trial is not None and trial.refit.gap < 0.5 * best.refit.gap
            lower = trial is not None and (
                trial.refit.objective < best.refit.objective * (1.0 - 1e-13)
            )
            idle = 0 if progress and (halved or lower) else idle + 1
            if trial is not None and progress:
                best = trial
            if length < 0.25:
                damping = min(1.0, max(10.0 * damping, TUNING.first_damping))
            elif length == 1.0:
                damping = 0.1 * damping if damping > 10.0 * TUNING.faded else 0.0
        best.refit.steps = steps
        return best.refit

    def _step(
        self, problem: Problem, prices: Prices, at: Candidate, damping: float
    ) -> tuple[Candidate | None, float]:
        """Return the point one model leads to and the length of the step; (None, 0) if nowhere."""
        slope = slope_of(problem, at)
        chosen = _chosen(problem, prices, at, slope)
        if not chosen.size:
            return None, 0.0
        start = at.refit.weights[chosen]
        model, ridge = _model(problem, at, chosen, damping)
        most = pivots_at_a_time(problem, chosen.size, self.max_pivots)
        mine = replace(prices, price=prices.price[chosen])
        target, outcome = model_minimum(
            problem, mine, model, ridge, slope[chosen], start, self.batch, most
        )
        if outcome.status is QPStatus.NOT_FINITE:
            return None, 0.0
        # At the end of the way, zeros are exact zeros.
        end = np.zeros(slope.size)
        end[chosen] = target
        return _search(
            problem, prices, at, end, _promise(problem, mine, slope[chosen], start, target)
        )


def kernel_columns(problem: Problem) -> Any:
    """Return the columns as the kernel reads them, None where it does not know them or the loss."""
    block, known = problem.design, problem.loss.in_kernel and problem.metric is None
    if not (known and isinstance(block, Block) and block.shape[1]):
        return None
    stored = block.bare.stored()
    return block.bare.stored_sparse() if stored is None else stored


def _chosen(problem: Problem, prices: Prices, at: Candidate, slope: Array) -> Columns:
    """Return the columns in use and those that want in, the most violated ones if many."""
    weights, regularizer = at.refit.weights, problem.regularizer
    if weights.size <= TUNING.few_columns:
        return np.arange(weights.size)
    gauge = prices.gauge(weights)
    # What a unit of the gauge costs at this point; in the ball, only where its bound is reached.
    cost = regularizer.multiplier(gauge, -float(slope @ weights))
    if regularizer.form == "constrained" and gauge < regularizer.amount * (1.0 - 1e-12):
        cost = 0.0
    gains = (np.abs(slope) if prices.signed else -slope) / prices.price
    used = np.flatnonzero(weights)
    wanting = np.flatnonzero((weights == 0.0) & (gains > cost))
    most = 100 + used.size // 10
    if wanting.size > most:
        wanting = wanting[np.argpartition(-gains[wanting], most)[:most]]
    return np.union1d(used, wanting)


def _model(problem: Problem, at: Candidate, chosen: Columns, damping: float) -> tuple[Array, float]:
    """Return H over the chosen columns, with the intercept minimised out, and its ridge."""
    block, loss = block_of(problem), problem.loss
    terms = problem.y, at.refit.prediction, problem.weight
    coupling = None
    if loss.coupled == 1:
        curvature = loss.curvature(*terms)
    else:
        curvature, coupling = loss.coupling(*terms)
    if damping:
        largest = loss.smoothness
        if not math.isfinite(largest):
            largest = float(curvature.max()) / float(problem.weight.max()) or 1.0
        curvature = curvature + damping * largest * problem.weight
    if coupling is not None:
        chosen_block = block.bare.take(chosen)
        model = chosen_block.coupled_gram(curvature, coupling)
    else:
        model, total = block.gram(curvature, chosen), float(curvature.sum())
        if problem.fit_intercept and total > 0.0:
            pull = block.transpose_dot(curvature)[chosen]
            model -= np.outer(pull, pull / total)
    if chosen.size > problem.y.size:
        # More weights than samples: without it pivots find no way out of what is singular.
        model[np.diag_indices(chosen.size)] += TUNING.model_ridge * np.trace(model) / chosen.size
    return with_ridge(problem, model, chosen)


def _promise(problem: Problem, prices: Prices, slope: Array, start: Array, end: Array) -> float:
    """Return <slope, end - start> + R(end) - R(start), coordinate by coordinate.

    Near an optimum both parts are large and their sum is tiny: differences of whole gauges would
    leave nothing but rounding.
    """
    amount, middle = problem.regularizer.amount, 0.5 * (prices.gauge(start) + prices.gauge(end))
    costs = {"penalized": amount, "squared": amount * middle, "constrained": 0.0}
    cost = costs[problem.regularizer.form]
    longer = prices.price * (np.abs(end) - np.abs(start))
    return float((slope * (end - start) + cost * longer).sum())


def _search(
    problem: Problem, prices: Prices, at: Candidate, end: Array, slope: float
) -> tuple[Candidate | None, float]:
    """Armijo search on F from c toward ``end``, with the intercept optimal everywhere.

    ``slope`` : ``_promise``; R is convex, so that the whole way promises at most this much more
    than any part of it. [Tseng, Yun 2009, doi:10.1007/s10107-007-0170-0]
    """
    refit = at.refit
    if not (slope < 0.0 and np.isfinite(end).all()):
        return None, 0.0
    enough = refit.objective + 1e-14 * abs(refit.objective)
    weights, linear, length = end, block_of(problem).dot(end), 1.0
    start = refit.prediction - refit.intercept
    change = linear - start
    for _ in range(40):
        # Most steps are whole ones: the certificate is what is wanted there.
        trial = priced_point(problem, prices, weights, linear, refit.intercept)
        if trial.refit.objective <= enough + TUNING.armijo * length * slope:
            return trial, length
        length *= 0.5 if length > 0.1 else 0.2
        weights = (1.0 - length) * refit.weights + length * end
        linear = start + length * change
    return None, 0.0
