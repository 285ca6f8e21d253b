"""choose_master: which master re-fits the weights of a problem, as two tables.

A master solves the problem restricted to few columns, which are in memory.
"""

from __future__ import annotations

import math

from atomlearn.core import masters
from atomlearn.core.interfaces import Array
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.masters.kernel_columns import reads
from atomlearn.core.masters.master import Master, Refit, block_of
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.quadratic_descent import QuadraticDescent, can_descend
from atomlearn.core.masters.sequential_qp import SequentialQP, group_prices_of, prices_of
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem, negligible_objective


def choose_master(problem: Problem) -> Master:
    """Return the master that solves problems like ``problem`` fastest.

    The norm determines the master of the weights; the first row that applies counts:

    ======================================================  ====================
    norm                                                    master
    ======================================================  ====================
    l1 of packed columns, penalized, with least squares     ``QuadraticDescent``
    l1, or l1 over w >= 0, with a weight for each column    ``SequentialQP``
    ``Groups`` of at most 64 columns, not constrained; if   ``SequentialQP``
    penalized, only for a loss other than squared, or at
    most 4 columns a sample, or columns that are not stored
    other ``Groups``, l2; without a ridge term              ``ScalingNewton``
    ``KSupport`` without groups or ``ElasticNetNorm``       ``PatternNewton``
    every other norm with a proximal map                    ``SemismoothNewton``
    ======================================================  ====================

    Loss and sizes determine the wrapper around it; the first row that applies counts:

    ======================================================  ====================
    problem                                                 around the master
    ======================================================  ====================
    ``QuadraticDescent``                                    nothing
    ``SequentialQP``, if its kernel reads the columns       nothing
    the loss couples predictions, or columns have no        ``ModelNewton``
    penalty; beyond 500 columns by working sets
    more than 500 columns, and more than twice those that   ``WorkingSets``
    ``ScalingNewton`` solves at little cost
    anything else                                           nothing
    ======================================================  ====================

    Parameters
    ----------
    problem : Problem
        A restricted problem, whose design is a ``Block``.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, norms, problem
    >>> block = designs.as_design(np.eye(3)).gather(np.arange(3))
    >>> level = problem.Regularizer(norms.L1(), "penalized", 0.1)
    >>> task = problem.Problem.build(block, np.ones(3), losses.Squared(), level)
    >>> type(choose_master(task)).__name__
    'SequentialQP'
    """
    inner: Master = SemismoothNewton()
    # Whether the loss couples predictions of several samples, and the norm is a weighted l1 norm.
    # ModelNewton, which handles such losses, fits no intercept outside of the loss.
    couples = problem.loss.coupled != 1 and not problem.fit_intercept
    is_l1 = prices_of(problem) is not None
    if is_l1 and can_descend(problem):
        return QuadraticDescent()
    n_samples, size = problem.design.shape
    # For groups with many more columns than samples, ScalingNewton is faster: its systems have
    # n_samples unknowns, and it needs no Hessian over the columns.
    is_penalized = problem.regularizer.form == "penalized" and not problem.tau
    is_stored = block_of(problem).traits.keeps_gram
    is_wide = is_stored and is_penalized and size > TUNING.columns_a_sample * n_samples
    by_samples = is_wide and is_quadratic(problem.loss) and problem.loss.coupled == 1
    has_small_groups = not by_samples and group_prices_of(problem) is not None
    # If the kernel of SequentialQP reads the columns, no working sets are needed.
    if (is_l1 or has_small_groups) and reads(problem, block_of(problem)):
        return SequentialQP(masters.ModelNewton(inner) if couples else inner)
    # The first table: the master for the norm.
    if is_l1:
        inner = SequentialQP(inner)
    elif masters.is_group_problem(problem):
        inner = masters.ScalingNewton()
    elif masters.pattern_of(problem) is not None:
        inner = masters.PatternNewton()
    # The second table: the masters around it. Working sets are used only for larger blocks.
    whole_block_limit = max(TUNING.few_columns, 2 * cheap_candidates(problem))
    sets = masters.WorkingSets(inner, smallest=whole_block_limit)
    if couples:
        sets = masters.WorkingSets(masters.ModelNewton(sets))
    return sets if sets.splits(problem) else sets.master


def cheap_candidates(problem: Problem) -> int:
    """Return the number of columns that a pass may add at almost no cost for the master.

    ScalingNewton solves small blocks of groups as a whole, and the result is the number of columns
    of such a block for the data of ``problem``. It is 0 for problems that other masters solve.
    """
    # Group norms need the scores of all columns: a norm that needs only the largest (plain l1) has
    # no groups. If the columns are too many to be listed, so are their groups.
    needs_largest_scores = problem.regularizer.norm.scores_for_ratings == "large"
    if needs_largest_scores or not problem.design.listable:
        return 0
    # ScalingNewton is the master of group norms that are no weighted l1 norm.
    has_groups = problem.loss.coupled == 1 and masters.is_group_problem(problem)
    return masters.cheap_columns(problem) if has_groups and prices_of(problem) is None else 0


def minimized(
    problem: Problem, weights: Array, shift: float, objective: float, tolerance: float
) -> Refit:
    """Return the solution of a restricted problem to the relative duality gap ``tolerance``.

    ``weights`` (m,) and ``shift``, the intercept over centered columns, are the warm start. The
    absolute gap to solve to is ``tolerance`` times the optimal objective. ``objective`` is a first
    estimate of that objective.
    """
    last_gap = math.inf
    while True:
        gap_target = max(tolerance * objective, negligible_objective(problem))
        refit = choose_master(problem).solve(problem, weights, shift, gap_target)
        # The objective fell, so the gap may still be too large relative to it: solve again, to a
        # smaller target. Stop if the gap is not halved, since then only rounding keeps it open.
        if refit.gap <= tolerance * refit.objective or refit.gap > 0.5 * last_gap:
            return refit
        if problem.deadline.passed:
            return refit
        weights = refit.weights
        shift = refit.intercept
        last_gap = refit.gap
        objective = refit.objective
