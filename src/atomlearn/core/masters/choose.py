"""choose_master: which master re-fits the weights of a problem, as one table."""

from __future__ import annotations

import math

from atomlearn.core import masters
from atomlearn.core.interfaces import Array
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.masters.master import Master, Refit, block_of
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.quadratic_descent import QuadraticDescent, can_descend
from atomlearn.core.masters.sequential_qp import SequentialQP, group_prices_of, prices_of, reads
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem, negligible_objective


def choose_master(problem: Problem) -> Master:
    """Return the master made for this kind of problem.

    The norm decides what solves for the weights; the first row that applies counts:

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

    Loss and sizes decide the wrapper around it; the first row that applies counts:

    ======================================================  ====================
    problem                                                 around the master
    ======================================================  ====================
    ``QuadraticDescent``                                    nothing
    ``SequentialQP``, if its kernel reads the columns       nothing
    the loss couples predictions, or columns are free;      ``ModelNewton``
    beyond 500 columns by working sets
    more than 500 columns, unless as many are free          ``WorkingSets``
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
    # ``priced`` : the norm is a weighted l1 norm.
    couples = problem.loss.coupled != 1 and not problem.fit_intercept
    priced = prices_of(problem) is not None
    if priced and can_descend(problem):
        return QuadraticDescent()
    n_samples, size = problem.design.shape
    # If many more columns than samples are in groups, ScalingNewton is faster: its systems have n
    # unknowns, and it needs no Hessian over the columns.
    penalized = problem.regularizer.form == "penalized" and not problem.tau
    stored = block_of(problem).traits.keeps_gram
    wide = stored and penalized and size > TUNING.columns_a_sample * n_samples
    by_samples = wide and is_quadratic(problem.loss) and problem.loss.coupled == 1
    grouped = not by_samples and group_prices_of(problem) is not None
    if (priced or grouped) and reads(problem, block_of(problem)):
        return SequentialQP(masters.ModelNewton(inner) if couples else inner)
    # The first table: the master for the norm.
    if priced:
        inner = SequentialQP(inner)
    elif masters.is_group_problem(problem):
        inner = masters.ScalingNewton()
    elif masters.pattern_of(problem) is not None:
        inner = masters.PatternNewton()
    # The second table: the masters around it.
    most = max(TUNING.few_columns, 2 * candidates_for_free(problem))
    sets = masters.WorkingSets(inner, smallest=most)
    if couples:
        sets = masters.WorkingSets(masters.ModelNewton(sets))
    return sets if sets.splits(problem) else sets.master


def candidates_for_free(problem: Problem) -> int:
    """Return how many columns a pass may add to ``problem`` at almost no cost for the master.

    ScalingNewton solves small blocks of groups as a whole, so that the result is the size of such a
    block. Its last digits cost one or two steps, so that re-fits with it are solved to the final
    accuracy at once. The result is 0 for problems that other masters solve.
    """
    # If there are too many columns to list, their groups cannot be listed. Plain l1 has no groups.
    large = problem.regularizer.norm.scores_for_ratings == "large"
    if large or not problem.design.listable:
        return 0
    scales = problem.loss.coupled == 1 and masters.is_group_problem(problem)
    return masters.free_columns(problem) if scales and prices_of(problem) is None else 0


def minimized(
    problem: Problem, weights: Array, shift: float, objective: float, tolerance: float
) -> Refit:
    """Return the solution of a restricted problem to the relative gap ``tolerance``.

    ``weights`` (m,) and ``shift``, the intercept over centered columns, are the warm start.
    ``objective`` is an estimate of the optimal objective, from which the first target is computed.
    """
    last_gap = math.inf
    while True:
        enough = max(tolerance * objective, negligible_objective(problem))
        refit = choose_master(problem).solve(problem, weights, shift, enough)
        # The target falls with the objective; rounding may keep the gap above it.
        if refit.gap <= tolerance * refit.objective or refit.gap > 0.5 * last_gap:
            return refit
        if problem.deadline.passed:
            return refit
        weights = refit.weights
        shift = refit.intercept
        last_gap = refit.gap
        objective = refit.objective
