"""CompressedSamples: a master that first makes many samples few, where the loss is squared.

With A = Q R in the scale of the sample weights, 1/2 ||y - A w||^2 is 1/2 ||Q'y - R w||^2 plus what
no w can change. The problem over R has the weights, the gradients and the gaps of the first one,
and fewer samples: as many as columns in use. R comes from the Gram matrix that the block keeps and
extends, where samples are many: once the intercept is minimised out, that of the columns less their
means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block, Master, Refit
from atomlearn.core.losses import Squared
from atomlearn.core.masters.candidate import block_of, certified
from atomlearn.core.masters.tuning import TUNING
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
        target = 0.99 * gap_target
        if math.prod(smaller.design.shape) <= TUNING.kernel_entries:
            # Beside the samples the last digits cost nothing, and may save a pass over them.
            target = min(target, TUNING.compressed_share * smaller.loss_at_zero())
        few = self.master.solve(smaller, weights, 0.0, target)
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
    """Return whether the samples can be made fewer."""
    block, size = problem.design, problem.design.shape[1]
    if not (isinstance(problem.loss, Squared) and isinstance(block, Block)):
        return False
    many = max(TUNING.many_samples, TUNING.samples_a_square * size * size)
    return block.bare is not block and size > 0 and block.shape[0] >= many


def compressed(problem: Problem) -> Problem | None:
    """Return the problem over fewer samples, its objective less a constant; None: there is none."""
    if not is_compressible(problem):
        return None
    block = CachedBlock.of(block_of(problem))
    found = _from_gram(problem, block)
    if found is None:
        return None
    smaller, target = found
    return replace(
        problem,
        design=CachedBlock(smaller),
        y=target,
        weight=np.ones(target.size),
        fit_intercept=False,
    )


def _from_gram(problem: Problem, block: CachedBlock) -> tuple[Block, Array] | None:
    """Return R and t with R'R = A'DA and R't = A'Dy from eigenvalues, D = diag(weight)."""
    size = block.shape[1]
    weight, y = problem.weight, problem.y
    if problem.fit_intercept:
        y = y - float(weight @ y) / float(weight.sum())
    gram = block.growing_gram(weight, problem.fit_intercept).matrix
    values, vectors = np.linalg.eigh(gram)
    # What lies below is rounding; along it, A w and the loss do not change.
    used = values > 4.0 * size * np.finfo(float).eps * values[-1]
    if not used.any():
        return None
    roots = np.sqrt(values[used])
    factor = np.asfortranarray(roots[:, None] * vectors[:, used].T)
    target = vectors[:, used].T @ block.transpose_dot(weight * y) / roots
    return DenseBlock(factor), target
