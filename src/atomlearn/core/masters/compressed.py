"""CompressedSamples: a master that first makes many samples few, where the loss is squared.

With A = Q R in the scale of the sample weights, 1/2 ||y - A w||^2 is 1/2 ||Q'y - R w||^2 plus what
no w can change. The problem over R has the weights, the gradients and the gaps of the first one,
and fewer samples: as many as columns in use. R comes task by task from designs with several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block, Master, Refit
from atomlearn.core.losses import Squared
from atomlearn.core.masters.candidate import block_of, certified
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class CompressedSamples(Master):
    """Solve over fewer samples where the block can be compressed, else as ``master`` does.

    The point is certified over all samples before it is given back; where rounding has made the
    two problems differ, ``master`` goes on over all samples.

    Parameters
    ----------
    master : Master
        What works on either.

    References
    ----------
    G. H. Golub, C. F. Van Loan 2013, Matrix Computations, section 5.3 (least squares by R).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.tile(np.eye(2), (2, 1))).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.L1(), "penalized", 0.1)
    >>> y = [1.0, 2.0, 1.0, 2.0]
    >>> restricted = problem.Problem.build(block, y, losses.Squared(), regularizer)
    >>> master = masters.CompressedSamples(masters.SemismoothNewton())
    >>> master.solve(restricted, np.zeros(2), 0.0, 1e-10).weights.round(6)
    array([0.95, 1.95])
    """

    master: Master

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Minimise the restricted problem to ``gap_target``; see Master."""
        smaller = None if problem.deadline.passed else compressed(problem)
        if smaller is None:
            return self.master.solve(problem, weights, intercept, gap_target)
        # Two roundings of one gap differ in the last digits: the second one is asked for.
        few = self.master.solve(smaller, weights, 0.0, 0.99 * gap_target)
        trial = certified(problem, few.weights).refit
        trial.steps = few.steps
        if trial.gap <= gap_target or trial.gap <= 1.1 * few.gap:
            return trial
        before = certified(problem, weights).refit
        best = trial if trial.objective <= before.objective else before
        if problem.deadline.passed:
            best.steps = few.steps
            return best
        refit = self.master.solve(problem, best.weights, best.intercept, gap_target)
        refit.steps += few.steps
        return refit

    def candidates_for_free(self, problem: Problem) -> int:
        """As the master inside, over all samples."""
        return self.master.candidates_for_free(problem)


def is_compressible(problem: Problem) -> bool:
    """Return whether the samples can be made fewer; the block may still say no."""
    block = problem.design
    tasks = isinstance(block, Block) and block.bare.compresses
    return tasks and isinstance(problem.loss, Squared) and not problem.fit_intercept


def compressed(problem: Problem) -> Problem | None:
    """Return the problem over fewer samples, its objective less a constant; None: there is none."""
    if not is_compressible(problem):
        return None
    found = block_of(problem).bare.compressed(problem.y, problem.weight)
    if found is None:
        return None
    smaller, target = found
    return replace(
        problem,
        design=CachedBlock(smaller),
        y=target,
        weight=np.ones(target.size),
    )
