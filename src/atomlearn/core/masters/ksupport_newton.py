"""KSupportNewton: a quadratic loss under the k-support norm over few columns, in one kernel call.

Where a step costs microseconds, Python's share of it is nearly all: the kernel makes the steps of
``SemismoothNewton``, and the point is priced once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from atomlearn._kernels import ksupport_newton
from atomlearn.core.interfaces import Array, Block
from atomlearn.core.masters.candidate import block_of, certified
from atomlearn.core.masters.master import Master, Refit
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.problem.problem import Problem


def support_size(problem: Problem) -> int | None:
    """Return the k of a k-support norm of single columns; None for other norms."""
    norm = problem.regularizer.norm
    if not isinstance(norm, KSupport) or norm.groups is not None:
        return None
    return min(norm.k, max(1, problem.design.shape[1]))


@dataclass(frozen=True, slots=True)
class KSupportNewton(Master):
    """Re-fit a quadratic loss under the k-support norm, penalized or squared, over a small block.

    What the kernel does not take, or does not bring to the target, is left to ``otherwise``.

    Parameters
    ----------
    otherwise : Master

    References
    ----------
    X. Li, D. Sun, K.-C. Toh 2018, doi:10.1137/16M1097572.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.KSupport(2), "squared", 1.0)
    >>> restricted = problem.Problem.build(block, [1.0, 2.0], losses.Squared(), regularizer)
    >>> masters.KSupportNewton().solve(restricted, np.zeros(2), 0.0, 1e-10).weights.round(6)
    array([0.5, 1. ])
    """

    otherwise: Master = field(default_factory=SemismoothNewton)

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        guess = self.guess(problem, weights, intercept)
        if guess is None:
            return self.otherwise.solve(problem, weights, intercept, gap_target)
        weights, intercept, steps = guess
        refit = certified(problem, weights, None, intercept).refit
        if refit.gap > gap_target and not problem.deadline.passed:
            refit = self.otherwise.solve(problem, weights, refit.intercept, gap_target)
        refit.steps += steps
        return refit

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """Return where the kernel ends, on problems that it solves before Python has begun."""
        k = support_size(problem)
        if k is None or not is_small(problem):
            return None
        n_samples, size = problem.design.shape
        block, weight = block_of(problem), problem.weight
        v = -problem.loss_gradient(np.zeros(n_samples), 0.0)
        if problem.fit_intercept:
            v = v - weight * (v.sum() / weight.sum())
        gram = _takes_gram(problem)
        matrix = _gram(problem, block) if gram else _columns(problem, block)
        if gram and problem.tau:
            matrix[np.diag_indices(size)] += problem.tau
        found, steps = ksupport_newton(
            matrix,
            block.transpose_dot(v),
            weights,
            k=k,
            level=problem.regularizer.amount,
            squared=problem.regularizer.form == "squared",
            gram=gram,
        )
        return found, intercept, steps


def is_small(problem: Problem) -> bool:
    """Return whether the kernel takes the problem, and milliseconds at most."""
    n_samples, size = problem.design.shape
    regularizer = problem.regularizer
    plain = problem.loss.is_quadratic and problem.metric is None and size > 0
    plain &= regularizer.form != "constrained" and 0.0 < regularizer.amount < np.inf
    plain &= block_of(problem).keeps_gram and not problem.deadline.passed
    if _takes_gram(problem):
        return plain
    return plain and n_samples * size <= TUNING.small_entries and not problem.tau


def _takes_gram(problem: Problem) -> bool:
    n_samples, size = problem.design.shape
    return size <= TUNING.few_columns and (n_samples >= size or bool(problem.tau))


def _gram(problem: Problem, block: Block) -> Array:
    """Return A'SA, the intercept minimised out."""
    gram = np.array(block.gram(problem.weight))
    if problem.fit_intercept:
        pull = block.transpose_dot(problem.weight)
        gram -= np.outer(pull, pull / float(problem.weight.sum()))
    return gram


def _columns(problem: Problem, block: Block) -> Array:
    """Return S^1/2 A, columns less their means where there is an intercept."""
    weight = problem.weight
    columns = np.array(block.dense(), dtype=np.float64, order="F")
    if problem.fit_intercept:
        columns -= (weight @ columns) / float(weight.sum())
    columns *= np.sqrt(weight)[:, None]
    return columns
