"""FCFW-ip of [V] section 4.3: the corrective step as a quadratic program, solved by Clarabel."""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse

from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array
from atomlearn.core.masters.master import Master, Refit, block_of, certified
from atomlearn.core.masters.sequential_qp import check_prices, model_terms
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class QuadraticIP(Master):
    """Re-fit rays for the squared loss: min 1/2 c'Hc - b'c + level p'c over c >= 0, H = A'QA.

    H is kept while atoms come and go, as for the active set (``ActiveSetQP``), so that what differs
    is the solver of the quadratic program alone: Clarabel at its default tolerances, which takes no
    warm start. The paper has MATLAB's quadprog.
    """

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem; see Master."""
        prices, block = check_prices(problem), CachedBlock.of(block_of(problem))
        best = certified(problem, np.maximum(weights, 0.0), None, intercept)
        level, coupling, radius = model_terms(problem.regularizer)
        if coupling or radius < np.inf:
            raise ValueError("QuadraticIP is for the penalized form")
        if best.refit.gap <= gap_target or not weights.size:
            return best.refit
        H = block.growing_gram(problem.weight, problem.fit_intercept).matrix
        size = weights.size
        linear = level * prices.price - (best.scores + H @ best.refit.weights)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix(np.triu(H)),
            linear,
            sparse.csc_matrix(-sparse.eye(size)),
            np.zeros(size),
            [clarabel.NonnegativeConeT(size)],
            settings,
        )
        found = solver.solve()
        # What an interior point leaves just above zero is zero.
        c = np.asarray(found.x)
        c = np.where(c > 1e-9 * max(float(c.max()), 1e-300), c, 0.0)
        trial = certified(problem, c, None, best.refit.intercept)
        refit = trial.refit if trial.improves(best) else best.refit
        refit.steps = int(found.iterations)
        return refit
