"""Sequential quadratic programming on rays and for l1: the active-set QP for every smooth loss.

[V] leaves smooth losses to future work, by sequential quadratic programming. At a point c with
optimal intercept the model of f is its second-order expansion with H = A'DA, D = diag(f''), less
what the intercept takes up; R is kept as it is. A quadratic program minimises the model, and a line
search on the true objective (Armijo) decides how far to go there. Kinks of the loss's derivative
(squared hinge) make it a generalized Newton method.

Where the model is of no use, because curvatures vanish or change too fast, D gets a multiple of
the largest curvature the loss can have: at the full multiple the model lies above f everywhere, so
full steps descend. The multiple is zero unless a step was cut short, and fades afterwards.

A kernel makes all steps of a call, and keeps the Hessian of the columns in use for the next; what
is here in Python proves where it ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from atomlearn._kernels import newton_qp
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block
from atomlearn.core.masters.active_set import (
    check_prices,
    feasible,
    model_terms,
    priced_point,
    prices_of,
)
from atomlearn.core.masters.candidate import block_of, finished
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.masters.model_newton import ModelNewton
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class SequentialQP(Master):
    """Re-fit rays, or weights under l1, for any smooth loss: Newton models, a QP, a search.

    A step costs a Gram matrix of the columns in use and those that want in, O(n k^2), the pivots
    of its QP, and a few products with the block. ``Refit.steps`` counts Newton steps.

    Parameters
    ----------
    fallback : Master, optional
        Goes on from the best point where rounding ends the steps before the target, and gets what
        ``is_for_kernel`` refuses.

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

    fallback: Master | None = None

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        prices, steps = check_prices(problem), 0
        if problem.loss.coupled != 1:
            otherwise = self.fallback or SemismoothNewton()
            return ModelNewton(otherwise).solve(problem, weights, intercept, gap_target)
        block = block_of(problem)
        best = priced_point(problem, prices, feasible(problem, prices, weights), None, intercept)
        known = problem.loss.coupled == 1 and bool(weights.size)
        columns = columns_of(block) if known else None
        # What the kernel thinks is the gap leaves out terms of third order.
        for target in (gap_target, 1e-3 * gap_target):
            if columns is None or best.refit.gap <= gap_target or problem.deadline.passed:
                break
            at, shift = best.refit.weights, best.refit.intercept
            at, shift, more = self._steps(problem, columns, at, shift, target)
            trial = priced_point(problem, prices, at, None, shift)
            steps += more
            if not trial.improves(best):
                break
            best = trial
        best.refit.steps = steps
        if self.fallback is None or not weights.size:
            return best.refit
        return finished(best.refit, self.fallback, problem, gap_target)

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """Return where the kernel ends, on problems that it solves before Python has begun."""
        n_samples, size = problem.design.shape
        quick = 0 < n_samples * size <= TUNING.small_entries and size <= TUNING.few_columns
        quick &= not problem.deadline.passed
        if not (quick and problem.loss.coupled == 1):
            return None
        return self._steps(problem, block_of(problem).dense(), weights, intercept, 0.0)

    def _steps(
        self, problem: Problem, columns: Any, weights: Array, intercept: float, gap: float
    ) -> tuple[Array, float, int]:
        """Return where the kernel ends, which it thinks is within the gap, and its steps."""
        prices = check_prices(problem)
        level, coupling, radius = model_terms(problem.regularizer)
        return newton_qp(
            columns,
            problem.y,
            problem.weight,
            problem.loss,
            feasible(problem, prices, weights),
            intercept * problem.fit_intercept,  # the kernel would keep the one that it is given
            price=prices.price,
            level=level,
            coupling=coupling,
            ridge=problem.tau,
            metric=problem.metric if problem.tau else None,
            radius=radius,
            signed=prices.signed,
            intercept=problem.fit_intercept,
            gap=gap,
            most=TUNING.inner_steps,
            seconds=problem.deadline.left,
            kept=CachedBlock.of(block_of(problem)).hessian,
        )


def columns_of(block: Block) -> Any:
    """Return the columns as the kernel reads them; None where they are too many to be stored."""
    stored = block.stored()
    return block.dense() if stored is None and _are_few(block) else stored


def _are_few(block: Block) -> bool:
    """Return whether a copy of the columns is small enough to be made."""
    return math.prod(block.shape) <= TUNING.column_entries


def is_for_kernel(problem: Problem) -> bool:
    """Return whether the problem is one of l1, or of rays, over columns that the kernel reads."""
    block = problem.design
    if not isinstance(block, Block) or not block.shape[1] or problem.loss.coupled != 1:
        return False
    if prices_of(problem) is None:
        return False
    known = block.stored() is not None
    return known or (block.shape[1] <= TUNING.few_columns and _are_few(block))
