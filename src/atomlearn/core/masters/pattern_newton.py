"""PatternNewton: a compiled semismooth Newton method for k-support or elastic net norms.

The problem is min over w, b of f(A w + b) + tau/2 ||w||^2 + R(w), with the loss f, few columns A
and the penalty R. On small problems nearly all time of a step is Python overhead. So a compiled
kernel makes the steps of ``SemismoothNewton`` on the quadratic model of f around a point (f itself
if f is quadratic). A line search toward the model's minimizer follows, and the duality gap is
evaluated once, at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from atomlearn._kernels import pattern_newton
from atomlearn.core.interfaces import Array, Block
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.masters.master import Master, Refit, block_of, certified, finished
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.elastic_net import ElasticNetNorm
from atomlearn.core.norms.ksupport import KSupport, required_k
from atomlearn.core.problem.problem import Problem, loss_gradient, objective_at, optimal_intercept


def pattern_of(problem: Problem) -> tuple[float, bool] | None:
    """Return k of the problem's norm, and whether it is ElasticNetNorm; None for other norms.

    The kernel can solve problems with KSupport without groups and with ElasticNetNorm. k is at most
    the number of columns.
    """
    norm = problem.regularizer.norm
    is_elastic_net = isinstance(norm, ElasticNetNorm)
    if not is_elastic_net and not (isinstance(norm, KSupport) and norm.groups is None):
        return None
    return min(required_k(norm), max(1, problem.design.shape[1])), is_elastic_net


@dataclass(frozen=True, slots=True)
class PatternNewton(Master):
    """Re-fit a smooth loss over a small block: k-support or elastic net, penalized or squared.

    Parameters
    ----------
    fallback : Master
        Solves the problems that the kernel cannot solve, and continues if the kernel ends above the
        gap target.

    References
    ----------
    X. Li, D. Sun, K.-C. Toh 2018, doi:10.1137/16M1097572.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, norms, problem
    >>> from atomlearn.core import PatternNewton
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.KSupport(2), "squared", 1.0)
    >>> restricted = problem.Problem.build(block, [1.0, 2.0], losses.Squared(), regularizer)
    >>> PatternNewton().solve(restricted, np.zeros(2), 0.0, 1e-10).weights.round(6)
    array([0.5, 1. ])
    """

    fallback: Master = field(default_factory=SemismoothNewton)

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Solve the restricted ``problem`` to a duality gap of ``gap_target``; see Master.

        The warm start is at ``weights`` (m,) and ``intercept``; the best point found is returned.
        """
        guess = self.guess(problem, weights, intercept)
        if guess is None:
            return self.fallback.solve(problem, weights, intercept, gap_target)
        weights, intercept, steps = guess
        refit = certified(problem, weights, intercept=intercept).refit
        refit.steps = steps
        return finished(refit, self.fallback, problem, gap_target)

    def guess(
        self, problem: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int] | None:
        """Return weights (m,), intercept and number of steps, without a certified gap; see Master.

        ``weights`` and ``intercept`` are the warm start. None if the problem is not small, or if
        the kernel cannot solve problems with its norm, form, loss or block.
        """
        n_samples, size = problem.design.shape
        block = block_of(problem)
        form = problem.regularizer.form
        has_ridge = bool(problem.tau)
        # The kernel works on the Gram matrix, or on the columns if they outnumber the samples.
        gram = size <= TUNING.few_columns and (n_samples >= size or has_ridge)
        is_small = gram or (n_samples * size <= TUNING.small_entries and not has_ridge)
        is_plain = problem.loss.coupled == 1 and problem.metric is None and form != "constrained"
        is_solvable = is_small and is_plain and 0.0 < problem.regularizer.amount < np.inf
        is_solvable = is_solvable and size > 0 and block.traits.keeps_gram
        if pattern_of(problem) is None or not is_solvable:
            return None
        z = block.predict(weights) + intercept
        steps = 0
        value = objective_at(problem, weights, z)
        # For a quadratic loss the first model is exact. Otherwise each step minimizes the model at
        # the last point, and halves the step until the objective is lower.
        for _ in range(TUNING.inner_steps):
            is_late = problem.deadline.use_step()
            solution = None if is_late else _minimum(problem, block, weights, z, gram)
            if solution is None:
                break
            minimizer, change, more_steps = solution
            steps += more_steps
            if is_quadratic(problem.loss):
                return minimizer, intercept, steps
            # ``change`` is the change of the predictions along ``direction``.
            direction = minimizer - weights
            last_value = value
            for halving in range(TUNING.halvings):
                trial = weights + 0.5**halving * direction
                moved = z + 0.5**halving * change
                value = objective_at(problem, trial, moved)
                if value < last_value:
                    weights = trial
                    z = moved
                    break
            # Stop if the objective no longer falls by more than rounding.
            if not value < (1.0 - TUNING.rounding_share) * last_value:
                break
        return weights, optimal_intercept(problem, block.predict(weights), intercept), steps


def _minimum(
    problem: Problem, block: Block, weights: Array, z: Array, gram: bool
) -> tuple[Array, Array, int] | None:
    """Return the minimizer of R plus the quadratic model of f around the predictions z.

    The result is the minimizer (m,), the change (n_samples,) of the predictions from z to those at
    the minimizer, and the number of kernel steps. None if f has no curvature at z.

    problem : has f and R. block : the columns A. weights : w, (m,), of which z (n_samples,) are the
    predictions. gram : whether the kernel gets the Gram matrix or the columns.
    """
    slope = loss_gradient(problem, z)
    pattern = pattern_of(problem)
    form = problem.regularizer.form
    curvature = problem.loss.curvature(problem.y, z, problem.weight)
    total = float(curvature.sum())
    has_intercept = float(problem.fit_intercept)
    if pattern is None or not 0.0 < total < np.inf:
        return None
    k, is_elastic_net = pattern
    # An intercept (has_intercept = 1) is minimized out: the columns are centered by their means,
    # weighted by the curvature.
    sums = block.scores(curvature).full()
    means = has_intercept * sums / total
    mean_slope = has_intercept * float(slope.sum()) / total
    if gram:
        matrix = np.array(block.gram(curvature))
        if has_intercept:
            matrix -= np.outer(sums, means)
        matrix[np.diag_indices(weights.size)] += problem.tau
        linear = matrix @ weights
    else:
        used = np.flatnonzero(curvature)
        matrix = np.array(block.dense()[used], dtype=np.float64, order="F")
        if has_intercept:
            matrix -= means
        matrix *= np.sqrt(curvature[used])[:, None]
        linear = matrix.T @ (matrix @ weights)
    # The model is 1/2 w'Hw - linear'w with linear = H w_k minus the gradient at w_k. H is
    # ``matrix``, or matrix'matrix if the kernel gets the columns.
    linear -= block.scores(slope - mean_slope * curvature).full() + problem.tau * weights
    minimizer, steps = pattern_newton(
        matrix,
        linear,
        weights,
        k=k,
        elastic=is_elastic_net,
        level=problem.regularizer.amount,
        squared=form == "squared",
        gram=gram,
    )
    # The optimal intercept of the model changes by -(means'd + mean_slope) along the direction d.
    direction = minimizer - weights
    return minimizer, block.predict(direction) - means @ direction - mean_slope, steps
