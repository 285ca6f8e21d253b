"""BlockPivots: a quadratic loss under l1 by exchanges of signs, from a warm start.

Gradient steps find the columns in use from nothing; once most of them are known, a handful of
linear systems of their size has the exact solution.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Block, Master, Refit
from atomlearn.core.masters.active_set import slope_of
from atomlearn.core.masters.candidate import block_of, certified, finished
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.sign_pivoting import l1_quadratic
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BlockPivots(Master):
    """Re-fit l1 and a quadratic loss by block pivoting on signs, where the start is a good one.

    That is where most columns of the block have a weight already. The penalized form with prices;
    what cycles, as among columns that are alike, is left to an active-set QP; whatever else there
    is to ``otherwise``.

    Parameters
    ----------
    otherwise : Master

    References
    ----------
    L. F. Portugal, J. J. Judice, L. N. Vicente 1994, A comparison of block pivoting and
    interior-point algorithms, Mathematics of Computation 63.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.L1(), "penalized", 0.1)
    >>> restricted = problem.Problem.build(block, [1.0, 2.0], losses.Squared(), regularizer)
    >>> masters.BlockPivots().solve(restricted, np.ones(2), 0.0, 1e-10).weights.round(6)
    array([0.9, 1.9])
    """

    otherwise: Master = field(default_factory=SemismoothNewton)

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        price = problem.regularizer.norm.l1_weights(weights.size)
        if price is None or not is_warm(problem, weights):
            return self.otherwise.solve(problem, weights, intercept, gap_target)
        best, steps = certified(problem, weights, None, intercept), 0
        near = best.refit.gap <= TUNING.near_share * best.refit.objective
        if near and best.refit.gap > gap_target and not problem.deadline.passed:
            found = l1_quadratic(
                _hessian(problem, block_of(problem)),
                slope_of(problem, best),
                price,
                weights,
                np.array([problem.regularizer.amount]),
                ridge=problem.tau,
                most=max(1, min(weights.size, problem.design.shape[0] - 2)),
            )
            if len(found):
                trial = certified(problem, found[0], None, intercept)
                best, steps = trial if trial.improves(best) else best, 1
        best.refit.steps = steps
        return finished(best.refit, self.otherwise, problem, gap_target)

    def candidates_for_free(self, problem: Problem) -> int:
        """As the other master."""
        return self.otherwise.candidates_for_free(problem)


def is_warm(problem: Problem, weights: Array) -> bool:
    """Return whether pivots are likely to end soon, and their matrix costs little."""
    n_samples, size = problem.design.shape
    plain = problem.loss.is_quadratic and problem.regularizer.form == "penalized"
    small = n_samples * size * size <= TUNING.pivoted_work
    warm = np.count_nonzero(weights) >= TUNING.known_share * size
    return bool(plain and small and warm and problem.metric is None and size > 1)


def _hessian(problem: Problem, block: Block) -> Array:
    """Return A'SA, the intercept minimised out."""
    weight = problem.weight
    hessian = block.gram(weight)
    if problem.fit_intercept:
        pull = block.transpose_dot(weight)
        hessian -= np.outer(pull, pull / float(weight.sum()))
    return np.ascontiguousarray(hessian)
