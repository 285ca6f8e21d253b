"""choose_master: which master re-fits the weights of a problem, as one table."""

from __future__ import annotations

from dataclasses import dataclass

from atomlearn.core.interfaces import Array
from atomlearn.core.masters.active_set import prices_of
from atomlearn.core.masters.ksupport_newton import KSupportNewton, support_size
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.masters.model_newton import ModelNewton, by_samples, is_coupled
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.scaling_newton import ScalingNewton, is_group_problem
from atomlearn.core.masters.sequential_qp import SequentialQP, is_for_kernel
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.masters.working_sets import WorkingSets
from atomlearn.core.problem.problem import Problem


def choose_master(problem: Problem) -> Master:
    """Return the master made for this kind of problem.

    The norm decides what solves for the weights:

    ======================================================  ====================
    norm                                                    master
    ======================================================  ====================
    ``Groups``, l2; without a ridge term, any loss, form    ``ScalingNewton``
    l1, or l1 over w >= 0, with a weight for each column,   ``SequentialQP``
    over stored columns, or up to 500 others
    ``KSupport`` without groups and a quadratic loss        ``KSupportNewton``
    every other norm with a proximal map; free columns      ``SemismoothNewton``
    ======================================================  ====================

    Loss and sizes decide what goes around it; the first row that applies counts:

    ======================================================  ====================
    problem                                                 around the master
    ======================================================  ====================
    ``SequentialQP``, where each sample is by itself        nothing
    the loss couples predictions, or columns are free;      ``ModelNewton``
    beyond 2000 columns by working sets, except under l1
    more than 500 columns, unless as many are free          ``WorkingSets``
    anything else                                           nothing
    ======================================================  ====================

    Parameters
    ----------
    problem : Problem
        A restricted problem, whose design is a ``Block``; for ``candidates_for_free`` any design.

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
    if is_for_kernel(problem):
        return SequentialQP(SemismoothNewton())
    sets = WorkingSets(_inner(problem))
    if problem.loss.coupled != 1 and not problem.fit_intercept:
        if prices_of(problem) is not None:
            return ModelNewton(WorkingSets(SemismoothNewton()))
        newton = ModelNewton(sets)
        # Many columns for one Hessian: those of a round are fewer.
        fits = is_coupled(problem) and problem.design.shape[1] <= TUNING.gram_columns
        return newton if fits or by_samples(problem) else WorkingSets(newton)
    return sets if sets.splits(problem) else sets.master


def _inner(problem: Problem) -> Master:
    """Return what solves for the weights, also of models of coupled losses."""
    if prices_of(problem) is not None:
        # Groups of one column each are among these.
        return SequentialQP(SemismoothNewton())
    if is_group_problem(problem):
        return ScalingNewton()
    if problem.loss.is_quadratic and support_size(problem) is not None:
        return KSupportNewton(SemismoothNewton())
    return SemismoothNewton()


@dataclass(frozen=True, slots=True)
class ChosenMaster(Master):
    """The master of ``choose_master``, chosen afresh for each problem."""

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        return choose_master(problem).solve(problem, weights, intercept, gap_target)

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """As the master that is chosen for the problem."""
        return choose_master(problem).guess(problem, weights, intercept)

    def candidates_for_free(self, problem: Problem) -> int:
        """As the master that is chosen for the problem."""
        return choose_master(problem).candidates_for_free(problem)


def default_master() -> Master:
    """Return the master that is chosen for each problem by ``choose_master``."""
    return ChosenMaster()
