"""ModelNewton: a proximal Newton method with the full Hessian of a loss that couples predictions.

The other masters use a diagonal f''. The Hessian f'' of multinomial and survival losses is not
diagonal. Nor is f'' diagonal if the loss is minimized over the coefficients of unpenalized columns,
since these coefficients affect all samples. Each step minimizes the quadratic model of f around
w_k,

    1/2 (w - w_k)'H (w - w_k) + (w - w_k)'A'f'(z) + R(w),   H = A'f''(z) A,

and a backtracking line search toward its minimizer follows. A is the block, z = A w_k, and R the
regularizer. The model is penalized least squares with the Cholesky factor L of H,

    1/2 ||L'w - t||^2 + R(w),   L L' = H,   t = L'w_k - L^-1 A'f'(z),

over a square block, which another master solves. If all n predictions are coupled and n is smaller
than the number of columns, the n x n matrix f''(z) is factored instead of H.
[Lee, Sun, Saunders 2014, doi:10.1137/130921428]
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import singledispatch

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from atomlearn.core.data.blocks import DenseBlock, coupled_gram
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.losses.around import bare_loss
from atomlearn.core.losses.free_columns import plain_loss
from atomlearn.core.losses.squared import Squared
from atomlearn.core.masters.master import (
    Candidate,
    Master,
    Refit,
    block_of,
    certified,
    finished,
    toward,
)
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.partition import Partition
from atomlearn.core.problem.problem import Problem, negative_gradient, shrink_inside


@dataclass(frozen=True, slots=True)
class ModelNewton(Master):
    """Proximal Newton method with the full Hessian, for losses that couple predictions.

    Such losses have a method ``coupling``, which returns c and K with f'' = diag(c) - K K'. A step
    costs O(n k^2) for the Hessian over k columns, plus the solution of the model. The method needs
    five to ten steps from a cold start, one to three from a warm start.

    Parameters
    ----------
    master : Master
        Solves the least-squares models. It also solves problems whose loss has no ``coupling``, or
        whose Hessian is larger than 256 MB. It continues if the Newton steps end above the gap
        target.

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
    >>> refit = masters.ModelNewton().solve(restricted, np.zeros(2), 0.0, 1e-8)
    >>> refit.gap <= 1e-8
    True
    """

    master: Master = field(default_factory=SemismoothNewton)

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Solve the restricted ``problem`` to a duality gap of ``gap_target``; see Master.

        The warm start is at ``weights`` (m,) and ``intercept``; the best point found is returned.
        """
        if not is_coupled(problem):
            return self.master.solve(problem, weights, intercept, gap_target)
        reduced = levelled(problem)
        if reduced is None:
            refit = self._steps(problem, weights, gap_target)
        else:
            # The coefficients W of q classes sum to zero over the classes: W = S Q', where S has
            # one column less than W. Solve for S.
            problem_of_S, Q = reduced
            S = np.reshape(weights, (-1, Q.shape[0])) @ Q
            refit_of_S = self._steps(problem_of_S, S.reshape(-1), gap_target)
            W = np.reshape(refit_of_S.weights, S.shape) @ Q.T
            refit = certified(problem, W.reshape(-1)).refit
            refit.steps = refit_of_S.steps
        return finished(refit, self.master, problem, gap_target)

    def _steps(self, problem: Problem, weights: Array, gap_target: float) -> Refit:
        """Return the point where the Newton steps end, started at ``weights`` (m,).

        They end at the duality gap ``gap_target`` of ``problem``, without progress, or at the
        deadline.
        """
        block = block_of(problem)
        steps = 0
        best = certified(problem, shrink_inside(problem, None, weights))
        while best.refit.gap > gap_target and steps < TUNING.inner_steps:
            if problem.deadline.use_step():
                break
            if not steps and not block.traits.couples_by_structure:
                block = DenseBlock(block.dense())  # A dense copy makes products BLAS calls.
            steps += 1
            minimizer = self._minimum(problem, block, best, gap_target)
            following = None if minimizer is None else toward(problem, best, minimizer)
            if following is None:
                break
            best = following
        best.refit.steps = steps
        return best.refit

    def _minimum(
        self,
        problem: Problem,
        block: Block,
        at: Candidate,
        gap_target: float,
    ) -> Array | None:
        """Return the minimizer (m,) of the quadratic model around the point ``at``.

        ``block`` has the columns of ``problem``. The model is solved to a small share of the gap at
        ``at``, or to a gap in proportion to ``gap_target`` if that is larger. None if some sample
        has no curvature, or H cannot be factored.
        """
        curvature = problem.loss.curvature(problem.y, at.refit.prediction, problem.weight)
        if np.any(curvature[problem.weight > 0.0] <= 0.0):
            return None  # ``master`` solves problems without curvature.
        make = _of_samples if by_samples(problem) else _of_columns
        model = make(problem, block, at)
        if model is None:
            return None
        # At the start, the gap of the model may be only a small share of the problem's gap: reduce
        # the target by the same ratio.
        ratio = min(certified(model, at.refit.weights).refit.gap / at.refit.gap, 1.0)
        # The model of a quadratic loss is exact: it is solved to the target itself.
        share = 0.0 if is_quadratic(plain_loss(problem.loss)) else TUNING.model_share
        target = ratio * max(share * at.refit.gap, 0.3 * gap_target)
        return self.master.solve(model, at.refit.weights, 0.0, target).weights


def is_coupled(problem: Problem) -> bool:
    """Return whether ModelNewton can solve the problem.

    The loss must couple predictions, no intercept is fitted outside the loss, and H and the block
    must be small enough.
    """
    n_samples, size = problem.design.shape
    # Blocks with a structure, such as several tasks, compute H without a dense copy of the block.
    is_structured = block_of(problem).traits.couples_by_structure
    max_entries = TUNING.structured_entries if is_structured else TUNING.gram_entries
    hessian_fits = size * size <= TUNING.gram_entries or by_samples(problem)
    fits = size > 0 and hessian_fits and n_samples * size <= max_entries
    return fits and not problem.fit_intercept and problem.loss.coupled != 1


def levelled(problem: Problem) -> tuple[Problem, Array] | None:
    """Return the problem over S with W = S Q', and Q (q, q - 1), orthonormal with zero sums.

    W (n_features, q) has the coefficients of q classes. The result is None unless two conditions
    hold. First, the loss does not change if the q predictions of a sample are shifted by the same
    number (as for softmax). Second, the groups of the norm are unions of rows of W. Then each row
    of an optimal W sums to zero: subtracting its mean leaves the loss unchanged and reduces the
    norm.
    """
    q = bare_loss(problem.loss).coupled
    size = problem.design.shape[1]
    groups = problem.regularizer.norm.as_groups(size) if q > 1 and size % q == 0 else None
    if groups is None:
        return None
    labels = groups.labels[::q]  # the group of each row of W, if rows are not split
    count = groups.weights.size
    if not np.array_equal(groups.labels, np.repeat(labels, q)):
        return None
    # Q: orthonormal columns, orthogonal to the vector of ones.
    Q = np.linalg.qr(np.hstack([np.ones((q, 1)), np.eye(q)[:, 1:]]))[0][:, 1:]
    block = spanned(_bare(block_of(problem)), Q)
    if block is None:
        return None
    # ||S Q'|| = ||S|| for each group of rows, so that the norm of S has the same groups of rows.
    rows = Groups(Partition(np.repeat(labels, q - 1), count, count), groups.weights)
    regularizer = problem.regularizer.of(rows)
    return replace(problem, design=block, regularizer=regularizer), Q


def by_samples(problem: Problem) -> bool:
    """Return whether to factor f''(z) (n, n) instead of H (m, m), as n samples < m columns.

    The loss of ``problem`` must couple all predictions (``loss.coupled`` is 0), as survival losses
    do.
    """
    n_samples, size = problem.design.shape
    return problem.loss.coupled == 0 and n_samples < size and n_samples <= TUNING.gram_columns


def _of_samples(problem: Problem, block: Block, at: Candidate) -> Problem | None:
    """Return the model as least squares in n rows: 1/2 ||C'A w - t||^2 with C C' = f''(z).

    t = C'A w_k - C^-1 f'(z). block : A; at : the point with weights w_k and predictions z. The
    result is ``problem`` with this loss. None if f'' cannot be factored.
    """
    loss = problem.loss
    prediction = at.refit.prediction
    # The second derivatives f'' = diag(c) - K K', as a dense matrix.
    c, K = loss.coupling(problem.y, prediction, problem.weight)
    second = -(K @ (K.T @ np.eye(c.size)))
    second[np.diag_indices(c.size)] += c
    factored = _factor(second, negative_gradient(problem, prediction), at.refit.objective)
    if factored is None:
        return None
    lower, solved = factored
    design = lower.T @ block.dense()
    target = design @ at.refit.weights + solved
    return replace(
        problem, design=DenseBlock(design), y=target, loss=Squared(), weight=np.ones(target.size)
    )


def _of_columns(problem: Problem, block: Block, at: Candidate) -> Problem | None:
    """Return the model as least squares over a square block: 1/2 ||L'w - t||^2 with L L' = H.

    t = L'w_k - L^-1 A'f'(z). block : A; at : the point with weights w_k and predictions z. The
    result is ``problem`` with this loss. None if H cannot be factored.
    """
    H = hessian(problem, block, at.refit.prediction)
    factored = _factor(H, at.scores, at.refit.objective)
    if factored is None:
        return None
    lower, solved = factored
    target = lower.T @ at.refit.weights + solved
    ones = np.ones(solved.size)
    # The Gram matrix of the columns of L' is H: it need not be computed again.
    triangle = CachedBlock.with_gram(DenseBlock(lower.T), ones, H)
    return replace(problem, design=triangle, y=target, loss=Squared(), weight=ones)


def hessian(problem: Problem, block: Block, prediction: Array) -> Array:
    """Return the Hessian A'f''A of the loss in w, (m, m), with f'' = diag(c) - K K'.

    problem : has the loss, whose ``coupling`` computes c and K. block : A, (n_samples, m).
    prediction : (n_samples,), where f'' is evaluated.
    """
    c, K = problem.loss.coupling(problem.y, prediction, problem.weight)
    return coupled_gram(_bare(block), c, K)


def _bare(block: Block) -> Block:
    """Return the block without its cache, for functions that dispatch on the type of a block."""
    return CachedBlock.of(block).inner


@singledispatch
def spanned(block: Block, right: Array) -> Block | None:
    """Return a block over S (r, s) whose predictions are those of ``block`` at W = S right'.

    The columns of ``block`` must be pairs of r features and q tasks, with coefficients W (r, q) row
    after row. None for other blocks, as by default. right : (q, s).
    """
    return None


def _factor(H: Array, right: Array, objective: float) -> tuple[Array, Array] | None:
    """Return the lower Cholesky factor L of H, regularized in place, and L^-1 ``right``.

    H : (m, m). right : (m,), the negative gradient, so that 1/2 ||L^-1 right||^2 is the decrease
    that the model predicts. objective : the objective at the point.

    A ridge is added to H. The ridge grows until the predicted decrease is at most ten times the
    objective: a larger decrease means that f has a slope in a direction without curvature. None if
    H has no curvature, or if the largest ridge is not enough.
    """
    mean = float(np.trace(H)) / H.shape[0]
    if not (np.isfinite(mean) and mean > 0):
        return None
    # A small ridge makes H invertible along directions in which the loss is constant, such as a
    # common shift of all classes.
    damping = 1e-10 * mean
    for _ in range(7):
        H[np.diag_indices(H.shape[0])] += damping
        damping *= 100.0
        with suppress(np.linalg.LinAlgError):
            lower = np.asarray(cholesky(H, lower=True, check_finite=False))
            solved = solve_triangular(lower, right, lower=True, check_finite=False)
            if solved @ solved <= 20.0 * objective:
                return lower, solved
    return None
