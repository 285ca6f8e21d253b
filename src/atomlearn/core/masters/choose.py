"""choose_master: which master re-fits the weights of a problem, as one table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from atomlearn.core.interfaces import Array, Block, Master, Refit
from atomlearn.core.masters.active_set import prices_of
from atomlearn.core.masters.compressed import CompressedSamples, is_compressible
from atomlearn.core.masters.coupled_newton import CoupledNewton, by_samples
from atomlearn.core.masters.ksupport_newton import KSupportNewton, support_size
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.scaling_newton import ScalingNewton, is_group_problem
from atomlearn.core.masters.sequential_qp import SequentialQP, kernel_columns
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
    where the kernel knows columns and loss, or the loss
    couples samples or has no bound on its curvature; else
    up to 500 plain columns
    ``KSupport`` without groups and a quadratic loss        ``KSupportNewton``
    every other norm with a proximal map; free columns      ``SemismoothNewton``
    ======================================================  ====================

    Loss and sizes decide what goes around it; the first row that applies counts:

    ======================================================  ====================
    problem                                                 around the master
    ======================================================  ====================
    ``SequentialQP``, which works on a few columns itself   nothing
    the loss couples predictions (several classes), up to   ``CoupledNewton``
    2000 columns, no intercept of its own and no ridge;
    beyond, by working sets of fewer
    squared loss over many more samples than columns        ``CompressedSamples``
    more than 500 columns, unless as many are free          ``WorkingSets``
    anything else                                           nothing
    ======================================================  ====================

    The two rows above ``WorkingSets`` lead to problems over fewer samples with as many columns,
    which are solved by working sets too where their sizes ask for it.

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
    if problem.loss.free_basis is not None and problem.loss.fixed()[0].coupled == 1:
        return WorkingSets(SemismoothNewton())
    if is_priced(problem):
        return priced_master()
    sets = WorkingSets(_inner(problem))
    newton, size = CoupledNewton(sets), problem.design.shape[1]
    if newton.takes(problem) and (size <= TUNING.coupled_columns or by_samples(problem)):
        return newton
    if problem.loss.coupled != 1 and problem.tau == 0.0 and not problem.fit_intercept:
        # Many columns for one Hessian: those of a round are fewer.
        return WorkingSets(newton)
    if is_compressible(problem):
        return CompressedSamples(sets)
    return sets if sets.splits(problem) else sets.master


def _inner(problem: Problem) -> Master:
    """Return what solves for the weights, of a block that QPs are not for."""
    if prices_of(problem) is not None:
        # Groups of one column each are among these.
        return priced_master() if kernel_columns(problem) is not None else SemismoothNewton()
    if is_group_problem(problem):
        return ScalingNewton()
    if problem.loss.is_quadratic and support_size(problem) is not None:
        return KSupportNewton(SemismoothNewton())
    return SemismoothNewton()


def priced_master() -> Master:
    """Return the master of l1 and of rays."""
    return SequentialQP(batch=TUNING.entering_together, fallback=SemismoothNewton())


def is_priced(problem: Problem) -> bool:
    """Return whether the problem is one for QPs: l1, or rays, over a few plain columns."""
    block = problem.design
    coupled = problem.loss.coupled != 1
    plain = isinstance(block, Block) and (
        not problem.fit_intercept if coupled else block.bare.keeps_gram
    )
    size = problem.design.shape[1]
    # Gradient steps see a coupling as a diagonal, and a curvature without a bound as its largest.
    steep = coupled or math.isinf(problem.loss.smoothness)
    known = kernel_columns(problem) is not None and not is_compressible(problem)
    few = steep or known or size <= TUNING.columns_together
    return plain and few and prices_of(problem) is not None


def _by_easier(problem: Problem, weights: Array, intercept: float) -> tuple[Array, float]:
    """Return a nearer start where the loss is straight at most samples.

    Newton's method sees no curvature there. Losses with more of it have solutions near by, each a
    good start for the next.
    """
    beyond = problem.loss.straight_beyond
    if math.isinf(beyond):
        return weights, intercept
    linear = problem.design.predict(weights)
    residual = linear + problem.optimal_intercept(linear, intercept) - problem.y
    width = float(np.median(np.abs(residual[problem.weight > 0.0])))
    while width > TUNING.far_out * beyond and not problem.deadline.passed:
        loss, factor = problem.loss.eased(width)
        easier = replace(problem, loss=loss, weight=factor * problem.weight)
        enough = TUNING.easier_share * easier.loss_at_zero()
        refit = choose_master(easier).solve(easier, weights, intercept, enough)
        weights, intercept = refit.weights, refit.intercept
        width *= TUNING.nearer
    return weights, intercept


@dataclass(frozen=True, slots=True)
class ChosenMaster(Master):
    """The master of ``choose_master``, chosen afresh for each problem."""

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        weights, intercept = _by_easier(problem, weights, intercept)
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
