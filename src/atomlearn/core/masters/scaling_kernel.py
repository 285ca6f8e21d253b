"""Newton's method on scalings in one call of a kernel, for small blocks.

A quadratic loss takes one call. For others the kernel solves the quadratic model around the last
point, with the working weights D = f''(z) and the working response D z + v: a proximal Newton step
[Lee, Sun, Saunders 2014], to which a line search on the objective itself is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import NewtonStatus, group_newton
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces import Array, Block
from atomlearn.core.masters.candidate import Candidate, block_of, certified
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.partition import Partition
from atomlearn.core.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class _Quadratic:
    """f(A w + b), b minimised out, as 1/2 ||y - B w||^2 plus a constant.

    matrix, linear : B and y, or where ``gram`` B'B and B'y; squared_target : ||y||^2.
    """

    matrix: Array
    linear: Array
    gram: bool
    squared_target: float


@dataclass(frozen=True, slots=True)
class GroupBlock:
    """A group problem on a block: its distinct features, and level * delta_g of each group.

    positions : (m,) the feature of each column of the block.
    """

    problem: Problem
    partition: Partition
    limit: Array
    base: Block
    positions: NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem, partition: Partition, limit: Array) -> GroupBlock:
        """Find the distinct features."""
        return cls(problem, partition, limit, *block_of(problem).distinct())

    def minimum(self, model: _Quadratic, weights: Array, gap_target: float) -> tuple[Array, int]:
        """Return the weights where the model has this gap, or as near as rounding allows."""
        order, starts = self.partition.order
        scalings = self.partition.norms(weights) / self.limit
        deadline, left, gap = self.problem.deadline, TUNING.inner_steps, math.inf
        # The kernel does not look at the clock: where there is a limit it is called again and
        # again, for as many steps as take a moment.
        slice_ = left
        if deadline.left < math.inf:
            slice_ = max(1, int(TUNING.slice_work / min(model.matrix.shape) ** 3))
        while True:
            scalings, slopes, outcome = group_newton(
                model.matrix,
                model.linear,
                starts,
                self.positions[order],
                self.limit,
                scalings,
                gram=model.gram,
                squared_target=model.squared_target,
                gap_target=gap_target,
                max_steps=min(slice_, left),
            )
            left -= outcome.steps
            unfinished = outcome.status is NewtonStatus.STEP_LIMIT and outcome.steps == slice_
            if not (unfinished and left) or deadline.passed:
                steps = TUNING.inner_steps - left
                return scalings[self.partition.labels] * slopes[self.positions], steps
            if outcome.gap >= gap:  # the best point is its start: it has to go further from there
                slice_ *= 2
            gap = outcome.gap


def point_of_kernel(
    group_block: GroupBlock, weights: Array, intercept: float, gap_target: float
) -> Candidate | None:
    """Return the certified point the kernel reaches; None: not a problem for it."""
    problem = group_block.problem
    if not problem.loss.is_quadratic:
        return _proximal_newton(group_block, weights, intercept, gap_target)
    model = _model(group_block, np.zeros(problem.y.size))
    if model is None:
        return None
    reached, steps = group_block.minimum(model, weights, 0.9 * gap_target)
    point = certified(problem, reached, None, intercept)
    point.refit.steps = steps
    return point


def _proximal_newton(
    group_block: GroupBlock, weights: Array, intercept: float, gap_target: float
) -> Candidate | None:
    problem = group_block.problem
    best, total = certified(problem, weights, None, intercept), 0
    for _ in range(TUNING.inner_steps):
        if best.refit.gap <= gap_target or problem.deadline.passed:
            break
        in_use = int(np.count_nonzero(group_block.partition.norms(best.refit.weights)))
        model = _model(group_block, best.refit.prediction, in_use)
        if model is None:
            if not total:
                return None
            break
        enough = TUNING.model_share * best.refit.gap
        reached, steps = group_block.minimum(model, best.refit.weights, enough)
        total += max(steps, 1)
        following = _descent(group_block, best, reached)
        if following is None:
            break
        best = following
    best.refit.steps = total
    return best


def _descent(group_block: GroupBlock, best: Candidate, reached: Array) -> Candidate | None:
    """Return the first point on the way there that descends enough, None where there is none."""
    problem, old = group_block.problem, best.refit
    partition, limit = group_block.partition, group_block.limit
    before, change = old.prediction - old.intercept, reached - old.weights
    moved = block_of(problem).dot(change)
    promised = float(limit @ (partition.norms(reached) - partition.norms(old.weights)))
    promised -= float(best.scores @ change)
    length = 1.0
    # Two large parts leave nothing but rounding of a tiny decrease: the gap tells more.
    for _ in range(TUNING.halvings if promised < 0 else 1):
        weights = reached if length == 1.0 else old.weights + length * change
        trial = certified(problem, weights, before + length * moved, old.intercept)
        enough = old.objective + TUNING.armijo * length * promised
        if promised < 0 and trial.refit.objective <= enough:
            return trial
        if trial.refit.gap < 0.5 * old.gap and trial.improves(best):
            return trial  # as low up to rounding
        length *= 0.5
    return None


def free_columns(problem: Problem) -> int:
    """Return how many columns, repeated ones included, fill a block that the kernel is fast on."""
    design = problem.design
    n_samples, n_columns = design.shape
    distinct = design.n_distinct
    # Few features of many samples: one Gram matrix, and the samples are never needed again.
    if problem.loss.is_quadratic and distinct <= min(TUNING.few_columns, n_samples):
        return n_columns
    # Other losses score the block once for each of their models.
    features = TUNING.column_entries // ((1 if problem.loss.is_quadratic else 4) * n_samples)
    if features < TUNING.least_free:
        return 0
    return features * n_columns // max(distinct, 1)


def _model(group_block: GroupBlock, z: Array, in_use: int = 0) -> _Quadratic | None:
    """Return the loss around the predictions z as least squares; None: none, or too large a one."""
    problem, base = group_block.problem, group_block.base
    n_samples, n_features = base.shape
    loss, quadratic = problem.loss, problem.loss.is_quadratic
    small = n_features <= TUNING.gram_columns and n_samples * n_features**2 <= TUNING.gram_work
    stored = base.stored() is not None and not base.is_sparse
    # What is taken whole at first, and as much again that enters later.
    by_columns = stored and n_samples * n_features <= 2 * TUNING.column_entries
    if quadratic:
        known = CachedBlock.of(base).knows_gram(problem.weight) and not problem.fit_intercept
        by_columns = by_columns and n_samples <= 2 * n_features and not known
        suited = by_columns or small or known
    else:  # the curvature changes: nothing to keep from call to call
        suited = small or (by_columns and in_use <= TUNING.few_columns)
    if not suited:
        return None
    v = -loss.gradient(problem.y, z, problem.weight)
    curvature = loss.curvature(problem.y, z, problem.weight)
    if not quadratic:
        floor = TUNING.least_curvature * float(curvature.max(initial=0.0)) or 1.0
        curvature = np.where(v != 0, np.maximum(curvature, floor), curvature)
    response = curvature * z + v
    total = float(curvature.sum())
    if not total > 0:
        return None
    if problem.fit_intercept:
        response -= curvature * (float(response.sum()) / total)
    root = np.sqrt(curvature)
    target = np.divide(response, root, out=np.zeros_like(root), where=root > 0)
    if not np.array_equal(root * target != 0, response != 0):
        return None
    square = float(target @ target)
    if by_columns:
        return _Quadratic(_columns(problem, base, curvature, root), target, False, square)
    if np.array_equal(curvature, problem.weight):
        curvature = problem.weight  # one array from call to call: Gram matrices are kept for it
    block = CachedBlock.of(base)
    gram = block.growing_gram(curvature, problem.fit_intercept).matrix
    return _Quadratic(gram, block.transpose_dot(response), True, square)


def _columns(problem: Problem, base: Block, curvature: Array, root: Array) -> Array:
    """Return diag(root) A, of A less its weighted means where there is an intercept."""
    columns = base.dense()
    if problem.fit_intercept:
        columns = columns - base.transpose_dot(curvature) / curvature.sum()
    if (root != 1.0).any():
        columns = columns * root[:, None]
    return np.asarray(columns, dtype=np.float64)
