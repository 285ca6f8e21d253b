"""ScalingNewton: Newton's method on the scalings of groups, for group lasso norms.

The penalty of a group is a minimum over its scaling t_g >= 0,

    level delta_g ||u_g|| = min over t_g >= 0 of  1/2 ||u_g||^2 / t_g + 1/2 level^2 delta_g^2 t_g,

which is the variational form of the group lasso. delta_g is the weight of group g, and u_g its
coefficients. The restricted problem is then smooth and convex, with one unknown t_g >= 0 per group:

    phi(t) = min over u, b of  f(A u + b) + 1/2 sum_g ||u_g||^2 / t_g  +  1/2 level^2 sum delta^2 t,

whose inner problem is a ridge regression: u_g = t_g q_g with q = A'v, v = -f'(A u + b). A_g are the
columns of group g. Let V have the columns A_g q_g, and let P be the inverse of
D^-1 + sum_g t_g A_g A_g' (D = f'', intercept projected out). Then

    d phi / d t_g = (level^2 delta_g^2 - ||q_g||^2) / 2,      d^2 phi = V' P V.

A step minimizes the quadratic model over t >= 0, and may change which t_g are 0. The gradient of
the model is replaced by that of the secular equation 1 / ||q_g|| = 1 / (level delta_g). This
equation is nearly linear in t (as for trust-region subproblems, More and Sorensen 1983), so that
full steps are accurate even far from the solution. [T] section 3 and multiple kernel learning use
the same scalings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from atomlearn._kernels import NewtonStatus, group_newton
from atomlearn.core.data.cached_block import CachedBlock, distinct_columns
from atomlearn.core.interfaces import Array, Block, Columns
from atomlearn.core.interfaces.loss import is_quadratic
from atomlearn.core.masters.master import Master, Refit, block_of, certified, finished, toward
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.partition import Partition
from atomlearn.core.problem.problem import Problem


def is_group_problem(problem: Problem) -> bool:
    """Return whether ``problem`` is one for ScalingNewton: a norm of groups, no ridge term."""
    groups = problem.regularizer.norm.as_groups(problem.design.shape[1])
    return groups is not None and problem.tau == 0.0


@dataclass(frozen=True, slots=True)
class ScalingNewton(Master):
    """Newton's method on the scalings of groups, for ``Groups`` and ``L2`` (one group).

    It needs the penalized form and a loss with f'' > 0 at every sample. A loss without curvature
    has no useful weighted least-squares model, and the other forms would need an outer search for
    the penalty level.

    A compiled kernel makes the steps, on the block or on its Gram matrix. For a loss that is not
    quadratic, each outer step is a proximal Newton step (iteratively reweighted least squares)
    with working weights D = f''(z) and working response D z + v. A step on the scalings factors a
    matrix with one row per active group. The method needs about ten steps from a cold start, two or
    three from a warm start.

    Parameters
    ----------
    fallback : Master
        Solves the problems that this master cannot solve: with other norms or forms, with samples
        without curvature, or with blocks too large for the kernel. It also continues if rounding
        ends the steps above the gap target.

    References
    ----------
    [T] M. Tan, I. W. Tsang, L. Wang 2014, section 3, for the scalings.
    J. J. More, D. C. Sorensen 1983, doi:10.1137/0904038, for the secular equation.
    J. D. Lee, Y. Sun, M. A. Saunders 2014, doi:10.1137/130921428, for other losses.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, losses, masters, norms, problem
    >>> block = designs.as_design(np.eye(2)).gather(np.arange(2))
    >>> regularizer = problem.Regularizer(norms.Groups([[0, 1]]), "penalized", 1.0)
    >>> restricted = problem.Problem.build(block, [3.0, 4.0], losses.Squared(), regularizer)
    >>> refit = masters.ScalingNewton().solve(restricted, np.zeros(2), 0.0, 1e-10)
    >>> refit.weights.round(6)
    array([2.4, 3.2])
    """

    fallback: Master = field(default_factory=SemismoothNewton)

    def solve(self, problem: Problem, weights: Array, intercept: float, gap_target: float) -> Refit:
        """Solve the restricted ``problem`` to a duality gap of ``gap_target``; see Master.

        The warm start is at ``weights`` (m,) and ``intercept``; the best point found is returned.
        """
        best = certified(problem, weights, None, intercept)
        steps = 0
        if not weights.size or not self._can_solve(problem, best.refit.prediction):
            return finished(best.refit, self.fallback, problem, gap_target)
        exact = is_quadratic(problem.loss)
        # Overlapping groups repeat columns: ``positions`` are the indices of the columns in
        # ``base``, the block of the distinct ones.
        base, positions = distinct_columns(block_of(problem))
        while best.refit.gap > gap_target and steps < TUNING.inner_steps:
            # Minimize the least-squares model of the loss at the best point, then make a line
            # search toward the minimizer. One round is enough for a quadratic loss.
            is_late = problem.deadline.use_step()
            model = None if is_late else _model(problem, base, best.refit.prediction)
            if model is None:
                break
            model_gap = 0.9 * gap_target if exact else TUNING.model_share * best.refit.gap
            end, more_steps = _minimum(problem, model, positions, best.refit.weights, model_gap)
            steps += max(more_steps, 1)
            following = toward(problem, best, end)
            best = following or best
            if exact or following is None:
                break
        best.refit.steps = steps
        return finished(best.refit, self.fallback, problem, gap_target)

    def _can_solve(self, problem: Problem, prediction: Array) -> bool:
        """Return whether the kernel can solve ``problem`` from ``prediction`` (n_samples,).

        The problem must have a norm of groups, the penalized form, no ridge term, and f'' > 0 at
        every sample of positive weight.
        """
        if not is_group_problem(problem) or problem.regularizer.form != "penalized":
            return False
        curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
        return bool((curvature[problem.weight > 0.0] > 0.0).all())


@dataclass(frozen=True, slots=True)
class _Quadratic:
    """The least-squares model s/2 ||y - B w||^2 of f(A w + b), with the intercept b eliminated.

    Attributes
    ----------
    matrix, linear : ndarray
        B (n_samples, m) and y (n_samples,); if ``gram``, B'B (m, m) and B'y (m,).
    gram : bool
        Whether the Gram matrix B'B is stored in place of B.
    squared_target : float
        ||y||^2.
    scale : float
        s.
    """

    matrix: Array
    linear: Array
    gram: bool
    squared_target: float
    scale: float


def _minimum(
    problem: Problem, model: _Quadratic, positions: Columns, weights: Array, gap_target: float
) -> tuple[Array, int]:
    """Return weights (m,) at which the model's duality gap is ``gap_target``, and the kernel steps.

    problem : has the norm and its level. model : the model of the loss, over the distinct columns.
    positions : (m,), the index of each column among the distinct columns. weights : (m,), the warm
    start.
    """
    groups = problem.regularizer.norm.as_groups(weights.size)
    assert groups is not None
    partition = Partition(groups.labels, groups.weights.size, groups.weights.size)
    # The penalty of each group, level * delta_g, for the model divided by its scale.
    limit = problem.regularizer.amount / model.scale * groups.weights
    # The kernel reads the columns and their weights u group after group: ``order`` are the columns
    # by group, and ``starts`` the position of each group in it.
    order, starts = partition.order
    u = weights[order]
    scalings = None
    steps = 0
    max_steps = 4 * TUNING.few_steps
    # The kernel does not know the deadline: it gets a maximum number of steps, and is called again.
    while True:
        u, outcome = group_newton(
            model.matrix,
            model.linear,
            starts,
            positions[order],
            limit,
            u,
            gram=model.gram,
            squared_target=model.squared_target,
            gap_target=gap_target / model.scale,
            max_steps=max_steps,
            scalings=scalings,
        )
        steps += outcome.steps
        scalings = outcome.scalings
        unfinished = outcome.status is NewtonStatus.STEP_LIMIT and steps < TUNING.inner_steps
        if not unfinished or problem.deadline.passed:
            minimizer = np.empty_like(weights)
            minimizer[order] = u
            return minimizer, steps
        # With too few steps the kernel returns its start: allow more, so that it can improve.
        max_steps *= 2


def cheap_columns(problem: Problem) -> int:
    """Return the number of columns up to which ScalingNewton takes little time on ``problem``.

    Column generation may add such columns at almost no cost. A feature in several overlapping
    groups is one distinct column, and counts as several columns.
    """
    n_samples, n_columns = problem.design.shape
    distinct = problem.design.traits.n_distinct or n_columns
    # Few features of many samples: one Gram matrix, and the samples are never needed again.
    if is_quadratic(problem.loss) and distinct <= min(TUNING.few_columns, n_samples):
        return n_columns
    # The kernel is fast on at most ``entries`` numbers of distinct columns. Losses that are not
    # quadratic need several models, each of which takes the scores of the block.
    entries = TUNING.column_entries // (1 if is_quadratic(problem.loss) else 4)
    return entries // n_samples * n_columns // max(distinct, 1)


def _model(problem: Problem, base: Block, z: Array) -> _Quadratic | None:
    """Return the weighted least-squares model of the loss at the predictions z (n_samples,).

    problem : has the loss. base : the distinct columns, the unknowns of the model. None if the loss
    has no curvature at z, or if the model would be too large.
    """
    # Store the columns themselves in the model (``by_columns``), or else their Gram matrix.
    n_samples, n_features = base.shape
    cached = CachedBlock.of(base)
    is_small = n_features <= TUNING.gram_columns and n_samples * n_features**2 <= TUNING.gram_work
    knows_gram = cached.knows_gram(problem.weight) and not problem.fit_intercept
    # Twice ``column_entries``: the first pass may add that number, and later passes as many again.
    is_dense = base.stored() is not None and not base.traits.is_sparse
    by_columns = is_dense and n_samples * n_features <= 2 * TUNING.column_entries
    # The Gram matrix for a quadratic loss serves all calls: prefer it if samples are many.
    if is_quadratic(problem.loss):
        by_columns = by_columns and n_samples <= 2 * n_features and not knows_gram
    if not (by_columns or is_small or knows_gram):
        return None
    # The dual vector v = -f'(z), and the working weights D = f''(z).
    v = -problem.loss.gradient(problem.y, z, problem.weight)
    curvature = problem.loss.curvature(problem.y, z, problem.weight)
    # Curvatures are raised to a floor: the target divides by their roots.
    floor = TUNING.rounding_share * float(curvature.max(initial=0.0))
    curvature = np.where(v != 0.0, np.maximum(curvature, floor), curvature)
    # D times the working response z + v / D, with the weighted mean removed for an intercept.
    response = curvature * z + v
    total = float(curvature.sum())
    if not total > 0.0:
        return None
    if problem.fit_intercept:
        response -= curvature * (float(response.sum()) / total)
    root = np.sqrt(curvature)
    target = np.divide(response, root, out=np.zeros_like(root), where=root > 0)
    square = float(target @ target)
    if by_columns:
        columns = np.asarray(base.dense(), dtype=np.float64)
        if problem.fit_intercept:
            columns = columns - base.scores(curvature).full() / total
        scale = float(curvature[0])
        if scale > 0.0 and (curvature == scale).all():
            # Equal weights, such as 1 / n of a mean, take no copy of the columns.
            return _Quadratic(columns, target / root[0], False, square / scale, scale)
        return _Quadratic(columns * root[:, None], target, False, square, scale=1.0)
    if np.array_equal(curvature, problem.weight):
        curvature = problem.weight  # the same array in each call: the cached Gram matrix is of it
    gram = cached.growing_gram(curvature, problem.fit_intercept).matrix
    return _Quadratic(gram, cached.scores(response).full(), True, square, 1.0)
