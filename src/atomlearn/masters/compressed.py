"""CompressedSamples: a master that first makes many samples few, where the loss is squared.

With A = Q R in the scale of the sample weights, 1/2 ||y - A w||^2 is 1/2 ||Q'y - R w||^2 plus what
no w can change. The problem over R has the weights, the gradients and the gaps of the first one,
and fewer samples: of designs with several tasks, as many as columns in use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atomlearn.designs.cached_block import CachedBlock
from atomlearn.interfaces import Master, Refit, SupportsCompression
from atomlearn.losses import Squared
from atomlearn.masters.newton import block_of, certified
from atomlearn.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CompressedSamples(Master):
    """Solve over fewer samples where the block can be compressed, else as ``master`` does.

    The point is certified over all samples before it is given back; where rounding has made the
    two problems differ, ``master`` goes on over all samples.

    Parameters
    ----------
    master : Master
        What works on either.
    """

    master: Master

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        smaller = compressed(problem)
        if smaller is None:
            return self.master.solve(problem, weights, intercept, gap_target)
        # Two roundings of one gap differ in the last digits: the second one is asked for.
        few = self.master.solve(smaller, weights, 0.0, 0.99 * gap_target)
        trial = certified(problem, few.weights, None, 0.0).refit
        trial.steps = few.steps
        if trial.gap <= gap_target or trial.gap <= 1.1 * few.gap:
            return trial
        before = certified(problem, weights, None, 0.0).refit
        best = trial if trial.objective <= before.objective else before
        refit = self.master.solve(problem, best.weights, 0.0, gap_target)
        refit.steps += few.steps
        return refit

    def candidates_for_free(self, problem: Problem) -> int:
        """As the master inside, over all samples."""
        return self.master.candidates_for_free(problem)


def compressed(problem: Problem) -> Problem | None:
    """Return the problem over fewer samples, its objective less a constant; None: there is none."""
    block = block_of(problem)
    inner = block.inner if isinstance(block, CachedBlock) else block
    if problem.fit_intercept or not isinstance(problem.loss, Squared):
        return None
    found = (
        inner.compressed(problem.y, problem.weight)
        if isinstance(inner, SupportsCompression)
        else None
    )
    if found is None:
        return None
    smaller, target = found
    return replace(problem, design=CachedBlock(smaller), y=target, weight=np.ones(target.size))
