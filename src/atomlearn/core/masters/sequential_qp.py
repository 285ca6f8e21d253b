"""Sequential quadratic programming (proximal Newton) for l1 and for atoms with weights >= 0.

[V] leaves smooth losses to future work, by sequential quadratic programming. At a point c with
optimal intercept, f is replaced by its second-order expansion with H = A'DA, D = diag(f''), after
elimination of the intercept; the regularizer R is not approximated. An active-set method solves
this quadratic program, and an Armijo line search on the true objective follows. For a loss whose
derivative has kinks (squared hinge) this is a generalized Newton method.

If curvatures vanish or change too fast, a multiple of the upper bound on f'' is added to D. At
multiple 1 the model is a majorant of f, so that full steps descend. The multiple is zero until a
step is shortened, and decreases afterwards.

A compiled kernel makes all steps of a call and keeps the Hessian of the active columns for the next
call. The Python code certifies the final point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn._kernels import newton_qp
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.losses.free_columns import free_columns
from atomlearn.core.masters.master import Candidate, Master, Refit, block_of, certified, finished
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.problem.problem import Problem, shrink_inside
from atomlearn.core.problem.regularizer import Regularizer


@dataclass(frozen=True, slots=True)
class Prices:
    """The penalty weights of a weighted l1 gauge, gauge(c) = sum_j price_j |c_j|.

    price : (m,). If ``signed`` is False, the gauge is infinite unless c >= 0, as for columns A a_j
    that are images of atoms a_j.
    """

    price: Array
    signed: bool

    def feasible(self, problem: Problem, weights: Array) -> Array:
        """Return the weights, clipped at 0 unless ``signed`` and shrunk into the domain of R."""
        return shrink_inside(problem, None, weights if self.signed else np.maximum(weights, 0.0))


def prices_of(problem: Problem) -> Prices | None:
    """Return the penalty weights of the norm; None if it is not a weighted l1 norm."""
    norm = problem.regularizer.norm
    size = problem.design.shape[1]
    signed = l1_weights(norm, size)
    price = l1_weights(norm, size, nonnegative=True) if signed is None else signed
    return None if price is None else Prices(price, signed is not None)


def check_prices(problem: Problem) -> Prices:
    """Return the penalty weights; raise TypeError if the norm is not a weighted l1 norm."""
    prices = prices_of(problem)
    if prices is None:
        raise TypeError(
            "this master re-fits columns whose gauge is a weighted sum of their weights' "
            f"magnitudes, got {problem.regularizer.norm!r}; use norms.L1() or "
            "norms.Nonnegative(norms.L1()), or SemismoothNewton for other norms"
        )
    return prices


def model_terms(regularizer: Regularizer) -> tuple[float, float, float]:
    """Return (level, coupling, radius): R = level p'c + coupling (p'c)^2 / 2 for p'c <= radius."""
    form = regularizer.form
    amount = regularizer.amount
    level = amount * (form == "penalized")
    coupling = amount * (form == "squared")
    return level, coupling, amount if form == "constrained" else math.inf


@dataclass(frozen=True, slots=True)
class SequentialQP(Master):
    """Sequential quadratic programming for any smooth loss under a weighted l1 norm.

    A step costs O(n k^2) for the Gram matrix of the k active columns and candidates, the pivots
    of the quadratic program, and a few products with the block. ``Refit.steps`` counts Newton
    steps.

    Parameters
    ----------
    fallback : Master, optional
        Goes on from the best point where rounding ends the steps before the target, and gets what
        the kernel does not read: losses that couple samples, and blocks that are large and not
        stored. None: nothing is kept, and those go to SemismoothNewton.

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
        prices = check_prices(problem)
        block = block_of(problem)
        steps = 0
        if not reads(problem, block):
            otherwise = self.fallback or SemismoothNewton()
            return otherwise.solve(problem, weights, intercept, gap_target)
        at = prices.feasible(problem, weights)
        columns = _columns_of(block)
        best: Candidate | None = None
        # The kernel's estimate of the gap leaves out terms of third order.
        for target in (gap_target, 1e-3 * gap_target):
            at, intercept, more = _steps(problem, prices, columns, at, intercept, target)
            trial = certified(problem, at, None, intercept)
            steps += more
            if best is None or trial.improves(best):
                best = trial
            if trial is not best or best.refit.gap <= gap_target or problem.deadline.passed:
                break
            intercept = best.refit.intercept
        assert best is not None
        best.refit.steps = steps
        if self.fallback is None:
            return best.refit
        return finished(best.refit, self.fallback, problem, gap_target)

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """Return where the kernel ends, on problems that it solves before Python has begun."""
        n_samples, size = problem.design.shape
        quick = 0 < n_samples * size <= TUNING.small_entries and size <= TUNING.few_columns
        if not quick or problem.deadline.passed or problem.loss.coupled != 1:
            return None
        prices = check_prices(problem)
        columns = block_of(problem).dense()
        inside = prices.feasible(problem, weights)
        return _steps(problem, prices, columns, inside, intercept, 0.0)


def _steps(
    problem: Problem, prices: Prices, columns: Any, weights: Array, intercept: float, gap: float
) -> tuple[Array, float, int]:
    """Return where the kernel ends, which it thinks is within the gap, and its steps."""
    level, coupling, radius = model_terms(problem.regularizer)
    return newton_qp(
        columns,
        problem.y,
        problem.weight,
        problem.loss,
        weights,
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


def _columns_of(block: Block) -> Any:
    """Return the columns as the kernel reads them."""
    stored = block.stored()
    return block.dense() if stored is None else stored


def reads(problem: Problem, block: Block) -> bool:
    """Return whether the kernel reads the problem: stored columns, or few enough for a copy."""
    if problem.loss.coupled != 1 or not block.shape[1]:
        return False
    few = math.prod(block.shape) <= TUNING.column_entries
    return few or block.stored() is not None


def is_constant(problem: Problem) -> bool:
    """Return whether the Hessian is the same at all points, and columns are free or large."""
    free = free_columns(problem.loss)
    block = block_of(problem)
    if free is not None:
        return free.separable and is_quadratic(free.inner)
    large = not block.traits.is_sparse and math.prod(block.shape) > TUNING.column_entries
    return large and is_quadratic(problem.loss) and problem.loss.coupled == 1
