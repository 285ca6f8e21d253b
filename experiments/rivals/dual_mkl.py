"""DualMKL: the subproblem of [T] as multiple kernel learning in the dual, as MKL-FGM solves it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn._kernels import active_set_qp
from atomlearn.core.interfaces import Array
from atomlearn.core.losses.squared_hinge import SquaredHinge
from atomlearn.core.masters.master import Master, Refit, block_of, certified
from atomlearn.core.problem.problem import Problem

#: The kernels of all blocks, in bytes.
KERNEL_BYTES = 4 * 2**30


@dataclass(frozen=True, slots=True)
class DualMKL(Master):
    """min over mu in the simplex of the dual of an SVM with the kernel sum_h mu_h X_h X_h'.

    [T] (29): the subproblem of ``FeatureGeneration`` with the squared hinge loss and no shift, in
    the n variables alpha. For fixed mu the SVM is a quadratic program over alpha >= 0, solved by an
    active set; mu_h = ||omega_h|| / sum ||omega|| then, (30). O(t n^2) memory and O(n^3) an
    iteration: what the primal of [T] Algorithm 4 saves.

    Parameters
    ----------
    max_iter : int
        Bound on SVMs in one call.

    References
    ----------
    [T] section 5.1; A. Rakotomamonjy, F. Bach, S. Canu, Y. Grandvalet 2008, SimpleMKL, JMLR 9.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solvers
    >>> from tests.oracles.sums import solve_sum
    >>> from experiments.rivals import DualMKL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 12))
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> mkl_fgm = solvers.FeatureGeneration(master=DualMKL(), max_blocks=2)
    >>> support, form = norms.KSupport(3), {"form": "squared", "level": 1.0}
    >>> form |= {"loss": "squared_hinge", "norm": support}
    >>> solve_sum(X, y, solver=mkl_fgm, **form).columns.size <= 6
    True
    """

    max_iter: int = 200

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        groups = problem.regularizer.norm.as_groups(problem.design.shape[1])
        known = groups is not None and isinstance(problem.loss, SquaredHinge)
        if groups is None or not known or problem.regularizer.form != "squared" or problem.tau:
            raise TypeError(
                "DualMKL is for the squared hinge loss with the squared norm of groups, the "
                "subproblem of FeatureGeneration; use AcceleratedGradient"
            )
        if problem.fit_intercept or not (problem.weight > 0).all():
            raise TypeError("DualMKL knows no shift and no weights of 0; use SemismoothNewton")
        best = certified(problem, weights, None, intercept).refit
        X, y = block_of(problem).dense().astype(np.float64), problem.y
        n, count = y.size, groups.weights.size
        if not count or n * n * 8 * count > KERNEL_BYTES:
            raise ValueError(f"DualMKL holds {count} kernels of {n} x {n}; use AcceleratedGradient")
        signed = X * y[:, None]
        blocks = [signed[:, groups.labels == group] for group in range(count)]
        kernels = [block @ block.T / problem.regularizer.amount for block in blocks]
        mu, alpha, steps = np.full(count, 1.0 / count), np.zeros(n), 0
        while best.gap > gap_target and steps < self.max_iter and not problem.deadline.passed:
            steps += 1
            matrix = np.diag(1.0 / problem.weight)
            for share, kernel in zip(mu, kernels, strict=True):
                matrix += share * kernel
            alpha, _ = active_set_qp(matrix, np.ones(n), alpha)
            pulled = signed.T @ alpha / problem.regularizer.amount
            trial = certified(problem, mu[groups.labels] * pulled).refit
            if trial.objective <= best.objective:
                best = trial
            sizes = mu * np.sqrt(np.bincount(groups.labels, pulled * pulled, count))
            mu = sizes / sizes.sum()
        best.steps = steps
        return best
