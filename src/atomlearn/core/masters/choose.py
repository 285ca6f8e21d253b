"""choose_master: which master re-fits the weights of a problem, as one table."""

from __future__ import annotations

from atomlearn.core import masters
from atomlearn.core.masters.master import Master, block_of
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.sequential_qp import SequentialQP, is_constant, prices_of, reads
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem


def choose_master(problem: Problem) -> Master:
    """Return the master made for this kind of problem.

    The norm decides what solves for the weights; the first row that applies counts:

    ======================================================  ====================
    norm                                                    master
    ======================================================  ====================
    l1, or l1 over w >= 0, with a weight for each column    ``SequentialQP``
    ``Groups``, l2; without a ridge term, any loss, form    ``ScalingNewton``
    ``KSupport`` without groups or ``ElasticNetNorm``       ``PatternNewton``
    every other norm with a proximal map                    ``SemismoothNewton``
    ======================================================  ====================

    Loss and sizes decide the wrapper around it; the first row that applies counts:

    ======================================================  ====================
    problem                                                 around the master
    ======================================================  ====================
    ``SequentialQP``, if its kernel reads the columns,      nothing
    unless a quadratic loss is over a large dense block
    the loss couples predictions, or columns are free, or   ``ModelNewton``
    l1 and a quadratic loss are over a large dense block;
    beyond 500 columns by working sets, except under l1
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
    priced = prices_of(problem) is not None
    if priced:
        inner = SequentialQP(inner)
        if reads(problem, block_of(problem)) and not is_constant(problem):
            return inner
    elif masters.is_group_problem(problem):
        inner = masters.ScalingNewton()
    elif masters.pattern_of(problem) is not None:
        inner = masters.PatternNewton()
    most = max(TUNING.few_columns, 2 * candidates_for_free(problem))
    sets = masters.WorkingSets(inner, smallest=most)
    couples = problem.loss.coupled != 1 and not problem.fit_intercept
    if couples or (priced and is_constant(problem)):
        newton = masters.ModelNewton(sets)
        if priced:  # its quadratic programs choose columns themselves
            return newton
        sets = masters.WorkingSets(newton)
    return sets if sets.splits(problem) else sets.master


def candidates_for_free(problem: Problem) -> int:
    """Return how many columns a pass may add that cost the master next to nothing.

    As many as fill a small block of groups, which ScalingNewton takes whole, and else 0. It also
    converges so fast that the last digits cost a step or two: re-fits then go all the way at once.
    """
    # Of columns too many to be listed no groups are listed either, and plain l1 has none.
    large = problem.regularizer.norm.scores_for_ratings == "large"
    if large or not problem.design.listable:
        return 0
    scales = problem.loss.coupled == 1 and masters.is_group_problem(problem)
    return masters.free_columns(problem) if scales and prices_of(problem) is None else 0
