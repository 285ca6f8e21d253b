"""Sequential quadratic programming (proximal Newton) for l1 and for atoms with weights >= 0.

[V] names this method for smooth losses as future work. The problem is
min over c, b of f(A c + b) + R(c), for few columns A. At a point c with the optimal intercept b, f
is replaced by its second-order expansion with H = A'DA, D = diag(f''), after elimination of the
intercept. The regularizer R is not approximated. An active-set method solves this quadratic
program, and an Armijo line search on the true objective follows. For a loss whose derivative has
kinks (squared hinge) this is a generalized Newton method.

If curvatures vanish or change too fast, a multiple of the upper bound on f'' is added to D. At
multiple 1 the model is a majorant of f, so that full steps descend. The multiple is zero until a
step is shortened, and decreases afterwards.

A compiled kernel makes all steps of a call, for one level (strength of R) or several. Its gradients
are exact; one Hessian is used again for many steps, levels and calls. Free (unpenalized) columns
are eliminated from the model as an intercept is. The Python code computes the duality gap of the
final point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from atomlearn._kernels import KeptHessian
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.losses.free_columns import free_columns, plain_loss
from atomlearn.core.masters.kernel_columns import columns_and_offsets, reads
from atomlearn.core.masters.master import Candidate, Master, Refit, block_of, certified, finished
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.separate_tasks import newton_by_task
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.problem.problem import Problem, optimal_intercept, shrink_inside
from atomlearn.core.problem.regularizer import Regularizer


@dataclass(frozen=True, slots=True)
class Prices:
    """The penalty weights ("prices") of a weighted l1 norm, gauge(c) = sum_j price_j |c_j|.

    Attributes
    ----------
    price : (m,)
        The price of each column, or of each group (n_groups,) if there are ``groups``.
    signed : bool
        Whether coefficients may be negative. If not, the gauge is infinite unless c >= 0, as for
        columns X a_j that are images of atoms a_j.
    groups : (starts, members), optional
        For the norm sum_k price_k ||c_k|| over groups of columns: group k has the columns
        members[starts[k]:starts[k + 1]].
    """

    price: Array
    signed: bool
    groups: tuple[Columns, Columns] | None = None

    def feasible(self, problem: Problem, weights: Array) -> Array:
        """Return ``weights`` (m,), clipped at 0 unless ``signed``, and scaled to be feasible.

        Weights are infeasible if the problem has the constrained form and their gauge is above the
        radius.
        """
        return shrink_inside(problem, None, weights if self.signed else np.maximum(weights, 0.0))


def prices_of(problem: Problem) -> Prices | None:
    """Return the penalty weights of the problem's norm; None if it is no weighted l1 norm."""
    norm = problem.regularizer.norm
    size = problem.design.shape[1]
    signed = l1_weights(norm, size)
    price = l1_weights(norm, size, nonnegative=True) if signed is None else signed
    return None if price is None else Prices(price, signed is not None)


def group_prices_of(problem: Problem) -> Prices | None:
    """Return the penalty weights of a norm of small groups of columns; None for other norms.

    None also if the form of ``problem`` is "constrained", if a group has more than
    ``TUNING.small_group`` columns, or if the form is "penalized" and columns are repeated.
    """
    size = problem.design.shape[1]
    groups = problem.regularizer.norm.as_groups(size)
    form = problem.regularizer.form
    repeats = problem.design.traits.n_distinct and form == "penalized"
    if groups is None or form == "constrained" or repeats:
        return None
    members = np.argsort(groups.labels, kind="stable")
    counts = np.bincount(groups.labels, minlength=groups.weights.size)
    used = np.flatnonzero(counts)
    if not used.size or counts.max() > TUNING.small_group:
        return None
    # The columns are listed by group; groups without a column in the problem are left out.
    starts = np.append(0, np.cumsum(counts[used]))
    return Prices(groups.weights[used], True, (starts, members))


def check_prices(problem: Problem, grouped: bool = True) -> Prices:
    """Return the penalty weights of the problem's norm; raise TypeError for other norms.

    It must be a weighted l1 norm. ``grouped`` : whether it may also be a norm of small groups.
    """
    prices = prices_of(problem) or (group_prices_of(problem) if grouped else None)
    if prices is None:
        raise TypeError(
            "this master re-fits columns whose gauge is a weighted sum of their weights' "
            f"magnitudes, got {problem.regularizer.norm!r}; use norms.L1() or "
            "norms.Nonnegative(norms.L1()), or SemismoothNewton for other norms"
        )
    return prices


def model_terms(regularizer: Regularizer) -> tuple[float, float, float]:
    """Return (level, coupling, radius) of R = level p'c + coupling (p'c)^2 / 2 for p'c <= radius.

    R is the ``regularizer``, and p'c the gauge, a weighted sum of magnitudes. Penalized, squared
    and constrained forms use the first, the second and the third number; the others are 0, or
    infinity for the radius.
    """
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
        Continues from the best point if rounding ends the steps above the gap target. It also
        solves the problems that the kernel cannot solve: with losses that couple samples, or with
        large blocks that are not stored as one array. None: SemismoothNewton solves the latter
        problems, and no master continues from the best point.

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

    takes_metric: ClassVar[bool] = True

    fallback: Master | None = None

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Solve the restricted ``problem`` to a duality gap of ``gap_target``; see Master.

        The warm start is at ``weights`` (m,) and ``intercept``; the best point found is returned.
        """
        prices = check_prices(problem)
        block = block_of(problem)
        steps = 0
        if not reads(problem, block):
            other_master = self.fallback or SemismoothNewton()
            return other_master.solve(problem, weights, intercept, gap_target)
        w = prices.feasible(problem, weights)
        columns = columns_and_offsets(problem, block)
        best: Candidate | None = None
        last_gap = math.inf
        target = gap_target
        while True:
            # Let the kernel make its steps, then compute the duality gap of the point where they
            # end. There is one level, so that the kernel returns one solution.
            terms = np.array([terms_of(problem)])
            [w], [intercept], n_steps = _steps(
                problem, terms, prices, columns, w, intercept, target
            )
            w = prices.feasible(problem, w)
            trial = certified(problem, w, None, intercept)
            steps += n_steps
            if best is None or trial.improves(best):
                best = trial
            if trial is not best or best.refit.gap <= gap_target or problem.deadline.passed:
                break
            # The kernel ends when objectives no longer differ by more than rounding. Call it again
            # as long as that halves the gap. From the third call on, it computes the Hessian anew
            # at this point, so that a step still reduces the slopes.
            if best.refit.gap > 0.5 * last_gap:
                break
            if math.isfinite(last_gap):
                CachedBlock.of(block).hessian = KeptHessian()
            last_gap = best.refit.gap
            # A smaller target, since the kernel's estimate of the gap omits terms of third order.
            target = 1e-3 * gap_target
            intercept = best.refit.intercept
        assert best is not None
        best.refit.steps = steps
        if self.fallback is None:
            return best.refit
        return finished(best.refit, self.fallback, problem, gap_target)

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """Return weights (m,), intercept and number of steps if ``problem`` is very small.

        The kernel starts at ``weights`` and ``intercept``. The duality gap of its solution is not
        computed, since that would take longer than the kernel; see ``Master.guess``. None for
        larger problems.
        """
        n_samples, size = problem.design.shape
        is_small = 0 < n_samples * size <= TUNING.small_entries and size <= TUNING.few_columns
        if not is_small or problem.deadline.passed or problem.loss.coupled != 1:
            return None
        columns = columns_and_offsets(problem, block_of(problem))
        if columns[0] is None:
            return None
        prices = check_prices(problem)
        w = prices.feasible(problem, weights)
        terms = np.array([terms_of(problem)])
        # The gap 0.0 lets the kernel go on until only rounding is left.
        solutions, intercepts, steps = _steps(problem, terms, prices, columns, w, intercept, 0.0)
        return solutions[0], intercepts[0], steps

    def guesses(
        self, problems: list[Problem], weights: Array, intercept: float, share: float
    ) -> list[tuple[Array, float]]:
        """Return weights and intercept for each of ``problems``, which differ only in their level.

        The kernel solves all problems in one call, to an estimated relative gap of ``share``. It
        starts at ``weights`` and ``intercept``; see Master. The list is empty if the kernel cannot
        read the columns.
        """
        first = problems[0]
        if not reads(first, block_of(first)):
            return []
        prices = check_prices(first)
        start = prices.feasible(first, weights)
        columns = columns_and_offsets(first, block_of(first))
        terms = np.array([terms_of(problem) for problem in problems])
        solutions, intercepts, _ = _steps(
            first, terms, prices, columns, start, intercept, 0.0, share
        )
        return list(zip(solutions, intercepts, strict=True))


def solved_at(
    problem: Problem, amounts: Array, taus: Array, columns: Array, share: float
) -> tuple[Array, list[float]]:
    """Return weights (n_solved, m) and intercepts for the first n_solved levels.

    One kernel call solves them. The first level starts at w = 0, each further level at the solution
    of the level before it.

    Parameters
    ----------
    problem : Problem
        In its penalized form; its own level does not matter.
    amounts, taus : (n_levels,)
        Decreasing levels, and the ridge weights there.
    columns : (n_samples, m)
        Data, on which the kernel works.
    share : float
        Estimated relative duality gap at which the steps for a level end.
    """
    # For each level: its amount, 0 for the term of the squared form, its ridge weight, and no
    # radius; see ``terms_of``.
    terms = np.zeros((amounts.size, 4))
    terms[:, 0] = amounts
    terms[:, 2] = taus
    terms[:, 3] = math.inf
    zero = np.zeros(columns.shape[1])
    start = optimal_intercept(problem, np.zeros(problem.y.size))
    solutions, intercepts, _ = _steps(
        problem, terms, check_prices(problem), (columns, None), zero, start, 0.0, share
    )
    return solutions, intercepts


def terms_of(problem: Problem) -> list[float]:
    """Return [level, coupling, tau, radius] of a problem, in the kernel's order.

    With the gauge g, the penalty is level g + coupling g^2 / 2 + tau/2 ||w||^2 for g <= radius.
    """
    level, coupling, radius = model_terms(problem.regularizer)
    return [level, coupling, problem.tau, radius]


def _steps(
    first: Problem,
    terms: Array,
    prices: Prices,
    columns: tuple[Any, Array | None],
    weights: Array,
    intercept: float,
    gap: float,
    share: float = 0.0,
) -> tuple[Array, list[float], int]:
    """Return the kernel's solution at each level: weights (n_solved, m), intercepts; and its steps.

    first : the problem, at any of the levels. terms : (n_levels, 4), the numbers of ``terms_of`` at
    each level. prices : the penalty weights. columns : the block as the kernel reads it, and
    the offsets o that its columns lack (see ``columns_and_offsets``). weights, intercept : warm
    start of the first level. The kernel ends a level when it estimates the duality gap to be at
    most ``gap``, or at most ``share`` of the objective.
    """
    # The predictions are C w - o'w + b for the columns C of the kernel: its intercept is b - o'w.
    read, offsets = columns
    subtracted = 0.0 if offsets is None else float(offsets @ weights)
    # The kernel minimizes over the coefficients of a basis of the unpenalized columns, one row for
    # each basis vector: a row of ones for an intercept only. ``start`` has the coefficients at the
    # warm start; ``whole`` adds the optimal contribution of these columns to a prediction.
    free = free_columns(first.loss)
    if free is None:
        basis = np.ones((int(first.fit_intercept), first.y.size))
        start = np.full(len(basis), intercept - subtracted)
    else:
        basis = free.basis.T
        linear = block_of(first).predict(weights) + subtracted
        start = basis @ (free.whole(first.y, linear, first.weight) - linear)
    solutions, free_coefficients, steps = newton_by_task(
        read,
        first.y,
        first.weight,
        plain_loss(first.loss),
        weights,
        start,
        price=prices.price,
        terms=terms,
        basis=basis,
        metric=first.metric if first.tau else None,
        signed=prices.signed,
        groups=prices.groups,
        gap=gap,
        share=share,
        most=TUNING.inner_steps,
        seconds=first.deadline.left,
        kept=CachedBlock.of(block_of(first)).hessian,
    )
    # Intercepts inside the loss (unpenalized columns) are not reported here.
    intercepts = free_coefficients[:, 0] if first.fit_intercept else np.zeros(len(solutions))
    if offsets is not None and first.fit_intercept:
        intercepts = intercepts + solutions @ offsets
    return solutions, intercepts.tolist(), steps
