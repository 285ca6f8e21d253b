"""CoupledNewton: proximal Newton steps for losses that couple predictions, as least squares.

The other masters see the second derivatives of a loss as a diagonal. The diagonal that bounds the
Hessian of the multinomial loss makes them first-order methods. Here each step minimizes the true
quadratic model of f at the predictions z, with H = A'f''(z) A over the m columns of the block,

    1/2 ||L'w - t||^2 + R(w),   L L' = H,   t = L^-1 (H w_k - A'f'(z)),

which is a problem with the squared loss over a block of m rows, for the masters there are. Where
all n predictions are coupled and there are fewer of them than columns, the factor is that of f''(z)
itself, of n rows. Then a line search on the objective itself. [Lee, Sun, Saunders 2014,
doi:10.1137/130921428]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block, Master, Refit
from atomlearn.core.losses import Squared
from atomlearn.core.masters.candidate import Candidate, block_of, certified
from atomlearn.core.masters.model_newton import ModelNewton
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.partition import Partition
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class CoupledNewton(ModelNewton):
    """Newton steps with the whole Hessian for losses with ``coupling``; others go to ``master``.

    Cost of a step: the Hessian over the block, O(n m^2), its Cholesky factor, O(m^3), and a
    re-fit of least squares over m samples. Five to ten steps from nothing, one to three from a
    warm start.

    Parameters
    ----------
    master : Master
        Minimizes the models. It also gets problems without ``coupling``, with an intercept of
        their own or a ridge term, those with a Hessian beyond 256 MB, and what steps leave undone.

    References
    ----------
    J. D. Lee, Y. Sun, M. A. Saunders 2014, doi:10.1137/130921428.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.Tasks(np.array([[1.0], [-1.0]]), 2).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.L1(), "penalized", 0.1)
    >>> y, loss = np.array([1.0, 0.0, 0.0, 1.0]), losses.Multinomial(2)
    >>> restricted = problem.Problem.build(block, y, loss, regularizer)
    >>> refit = masters.CoupledNewton().solve(restricted, np.zeros(2), 0.0, 1e-8)
    >>> refit.gap <= 1e-8
    True
    """

    master: Master = field(default_factory=SemismoothNewton)

    def takes(self, problem: Problem) -> bool:
        """Return whether the loss couples, over few enough columns; see ``is_coupled``."""
        return is_coupled(problem)

    def steps(self, problem: Problem, weights: Array, gap_target: float) -> Refit:
        """Return where Newton steps end: over rows that sum to zero, where optimal ones do."""
        smaller = levelled(problem)
        if smaller is None:
            # Not super(): slots make another class of this one.
            return ModelNewton.steps(self, problem, weights, gap_target)
        inside, right = smaller
        rows = np.reshape(weights, (-1, right.shape[0])) @ right
        found = ModelNewton.steps(self, inside, rows.reshape(-1), gap_target)
        back = np.reshape(found.weights, rows.shape) @ right.T
        refit = certified(problem, back.reshape(-1)).refit
        refit.steps = found.steps
        return refit

    def prepared(self, problem: Problem) -> Block:
        """Return the block where it has a structure, else its array: products are BLAS's then."""
        block = block_of(problem)
        return block if block.couples_by_structure else DenseBlock(block.dense())

    def model(self, problem: Problem, block: Block, at: Candidate) -> Problem | None:
        """Return the quadratic model at a point as least squares over as few rows as can be."""
        if by_samples(problem):
            return _model_of_samples(problem, block, at)
        H = hessian(problem, block, at.refit.prediction)
        lower = _factor(H)
        if lower is None:
            return None
        moved = solve_triangular(lower, at.scores, lower=True, check_finite=False)
        target = lower.T @ at.refit.weights + moved
        ones = np.ones(target.size)
        triangle = CachedBlock.with_gram(DenseBlock(lower.T), ones, H)
        return replace(problem, design=triangle, y=target, loss=Squared(), weight=ones)


def is_coupled(problem: Problem) -> bool:
    """Return whether the problem is one for Newton steps with the whole Hessian."""
    n_samples, size = problem.design.shape
    block = problem.design
    structured = isinstance(block, Block) and block.couples_by_structure
    most = TUNING.structured_entries if structured else TUNING.gram_entries
    few = size * size <= TUNING.gram_entries or by_samples(problem)
    fits = size > 0 and few and n_samples * size <= most
    return fits and not problem.fit_intercept and problem.loss.coupled != 1


def levelled(problem: Problem) -> tuple[Problem, Array] | None:
    """Return the problem over S with W = S Q', and Q (q, q - 1), whose columns sum to zero.

    Where one number may be added to all q predictions of a row, and groups are the rows of W, the
    optimal rows sum to zero: their mean costs norm and changes nothing. None for other problems.
    """
    q, size = problem.loss.bare.coupled, problem.design.shape[1]
    groups = problem.regularizer.norm.as_groups(size) if q > 1 and size % q == 0 else None
    if groups is None:
        return None
    partition, weights = groups.parts(size)
    labels = partition.labels[::q]
    whole = labels.size == partition.n_groups
    if not (whole and np.array_equal(partition.labels, np.repeat(labels, q))):
        return None
    right = np.linalg.qr(np.hstack([np.ones((q, 1)), np.eye(q)[:, 1:]]))[0][:, 1:]
    block = block_of(problem).spanned(right)
    if block is None:
        return None
    rows = Partition(np.repeat(labels, q - 1), labels.size, labels.size)
    regularizer = replace(problem.regularizer, norm=Groups(rows, weights))
    return replace(problem, design=block, regularizer=regularizer), right


def by_samples(problem: Problem) -> bool:
    """Return whether all predictions are coupled, and fewer than the columns."""
    n_samples, size = problem.design.shape
    return problem.loss.coupled == 0 and n_samples < size and n_samples <= TUNING.gram_columns


def _model_of_samples(problem: Problem, block: Block, at: Candidate) -> Problem | None:
    """Return 1/2 ||C'(A w) - t||^2 with C C' = f''(z), t = C'A w_k - C^-1 f'(z), over n rows."""
    loss, prediction = problem.loss, at.refit.prediction
    c, K = loss.coupling(problem.y, prediction, problem.weight)
    H = -(K @ (K.T @ np.eye(c.size)))
    H[np.diag_indices(c.size)] += c
    lower = _factor(H)
    if lower is None:
        return None
    design = lower.T @ block.dense()
    v = problem.negative_gradient(prediction)
    target = design @ at.refit.weights + solve_triangular(lower, v, lower=True, check_finite=False)
    return replace(
        problem, design=DenseBlock(design), y=target, loss=Squared(), weight=np.ones(target.size)
    )


def hessian(problem: Problem, array: Block, prediction: Array) -> Array:
    """Return A' (diag(c) - K K') A of the loss at these predictions."""
    loss = problem.loss
    c, K = loss.coupling(problem.y, prediction, problem.weight)
    return array.coupled_gram(c, K)


def _factor(H: Array) -> Array | None:
    """Return the lower Cholesky factor of H, damped in place; None where there is no curvature."""
    mean = float(np.trace(H)) / H.shape[0]
    if not (np.isfinite(mean) and mean > 0):
        return None
    # Directions that the loss does not see, such as the same for all classes: a trace of it there.
    damping = 1e-10 * mean
    for _ in range(6):
        try:
            H[np.diag_indices(H.shape[0])] += damping
            return np.asarray(cholesky(H, lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            damping *= 100.0
    return None
