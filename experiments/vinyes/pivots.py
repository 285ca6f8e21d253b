"""[V] Algorithm 2 as a master of its own, which counts pivots: what Figure 4 shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn._kernels import active_set_qp
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array
from atomlearn.core.masters.master import Master, Refit, block_of, certified
from atomlearn.core.masters.sequential_qp import check_prices, model_terms
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Pivots(Master):
    """Re-fit rays for the squared loss: H and its factor are kept while columns come and go."""

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        prices, block = check_prices(problem), CachedBlock.of(block_of(problem))
        best, steps = certified(problem, np.maximum(weights, 0.0), None, intercept), 0
        level, coupling, radius = model_terms(problem.regularizer)
        while best.refit.gap > gap_target and weights.size and not problem.deadline.passed:
            growing = block.growing_gram(problem.weight, problem.fit_intercept)
            found, outcome = active_set_qp(
                growing.matrix,
                -best.scores,
                best.refit.weights,
                state=growing.factor(coupling, 0.0, prices.price),
                price=prices.price,
                level=level,
                coupling=coupling,
                radius=radius,
                from_gradient=True,
            )
            steps += outcome.pivots
            trial = certified(problem, found, None, best.refit.intercept)
            if not trial.improves(best):
                break
            # The gradient at the new point makes up for the rounding of H, while that helps.
            slower = trial.refit.gap > 0.5 * best.refit.gap
            best = trial
            if slower:
                break
        best.refit.steps = steps
        return best.refit
