"""PatternNewton: a quadratic loss over few columns, k-support or elastic net, in one kernel call.

Where a step costs microseconds, Python's share of it is nearly all: the kernel makes the steps of
``SemismoothNewton``, and the point is priced once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from atomlearn._kernels import pattern_newton
from atomlearn.core.interfaces import Array
from atomlearn.core.masters.master import Master, Refit, block_of, certified, finished
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.elastic_net import ElasticNetNorm
from atomlearn.core.norms.ksupport import KSupport, given
from atomlearn.core.problem.problem import Problem


def pattern_of(problem: Problem) -> tuple[float, bool] | None:
    """Return k, and whether it is the elastic net's; None for norms that the kernel lacks."""
    norm = problem.regularizer.norm
    elastic = isinstance(norm, ElasticNetNorm)
    if not elastic and not (isinstance(norm, KSupport) and norm.groups is None):
        return None
    return min(given(norm), max(1, problem.design.shape[1])), elastic


@dataclass(frozen=True, slots=True)
class PatternNewton(Master):
    """Re-fit a quadratic loss over a small block: k-support or elastic net, penalized or squared.

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
    >>> masters.PatternNewton().solve(restricted, np.zeros(2), 0.0, 1e-10).weights.round(6)
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
        refit.steps = steps
        return finished(refit, self.otherwise, problem, gap_target)

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """Return where the kernel ends, on problems that it takes milliseconds for at most."""
        n_samples, size = problem.design.shape
        pattern, regularizer, weight = pattern_of(problem), problem.regularizer, problem.weight
        form, level = regularizer.form, regularizer.amount
        block, ridge = block_of(problem), bool(problem.tau)
        gram = size <= TUNING.few_columns and (n_samples >= size or ridge)
        few = gram or (n_samples * size <= TUNING.small_entries and not ridge)
        plain = problem.loss.is_quadratic and problem.metric is None and form != "constrained"
        taken = few and plain and 0.0 < level < np.inf and size > 0 and block.keeps_gram
        if pattern is None or not taken or problem.deadline.passed:
            return None
        v = -problem.loss_gradient(np.zeros(n_samples), 0.0)
        pull, total = block.transpose_dot(weight), float(weight.sum())
        if problem.fit_intercept:
            v = v - weight * (v.sum() / total)
        if gram:
            matrix = np.array(block.gram(weight))
            if problem.fit_intercept:
                matrix -= np.outer(pull, pull / total)
            matrix[np.diag_indices(size)] += problem.tau
        else:
            matrix = np.array(block.dense(), dtype=np.float64, order="F")
            if problem.fit_intercept:
                matrix -= pull / total
            matrix *= np.sqrt(weight)[:, None]
        linear, (k, elastic), squared = block.transpose_dot(v), pattern, form == "squared"
        found, steps = pattern_newton(
            matrix, linear, weights, k=k, elastic=elastic, level=level, squared=squared, gram=gram
        )
        return found, intercept, steps
