"""Newton's method on scalings in one call of a kernel, for a quadratic loss on a small block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import group_newton, has_group_newton
from atomlearn.designs import DenseBlock, Lifted
from atomlearn.designs.cached_block import CachedBlock
from atomlearn.interfaces import Block
from atomlearn.masters.newton import Candidate, block_of, certified
from atomlearn.masters.ridge_of_groups import unique_columns
from atomlearn.norms.partition import Partition
from atomlearn.problem import Problem

Array = NDArray[np.float64]

#: Features up to which their whole Gram matrix is worth having, and its entries times samples.
MOST_FEATURES = 2000
MOST_WORK = 2**31
#: Entries of a dense block up to which Gram matrices of the features in use come from its columns,
#: where samples are not many more than features.
MOST_ENTRIES = 2**22
#: Entries of a block that are gathered, and scored, in less time than the overhead of a pass takes.
FREE_ENTRIES = 2**19
#: Features that may enter in a step: at least so many, and this share of those in use.
LEAST_ENTERING = 50
SHARE_ENTERING = 0.5


@dataclass(frozen=True, slots=True)
class _Quadratic:
    """f(A w + b), b minimised out, as 1/2 ||y - B w||^2 plus a constant.

    matrix, linear : B and y, or where ``gram`` B'B and B'y; squared_target : ||y||^2.
    """

    matrix: Array
    linear: Array
    gram: bool
    squared_target: float


def steps_by_kernel(
    problem: Problem,
    weights: Array,
    intercept: float,
    partition: Partition,
    limit: Array,
    gap_target: float,
) -> tuple[Candidate, int] | None:
    """Return the certified point the kernel reaches, and its steps; None: not a problem for it."""
    if not problem.loss.is_quadratic:
        return None
    base, positions = unique_columns(block_of(problem))
    model = _model(problem, base)
    if model is None:
        return None
    order, starts = partition.order
    scalings, slopes, outcome = group_newton(
        model.matrix,
        model.linear,
        starts,
        positions[order],
        limit,
        partition.norms(weights) / limit,
        gram=model.gram,
        squared_target=model.squared_target,
        gap_target=0.9 * gap_target,
        least=LEAST_ENTERING,
        share=SHARE_ENTERING,
    )
    reached = scalings[partition.labels] * slopes[positions]
    return certified(problem, reached, None, intercept), outcome.steps


def free_columns(problem: Problem) -> int:
    """Return how many columns, repeated ones included, fill a block that the kernel is fast on."""
    if not (problem.loss.is_quadratic and has_group_newton()):
        return 0
    n_samples, n_columns = problem.design.shape
    features = FREE_ENTRIES // n_samples
    if isinstance(problem.design, Lifted):
        features = features * n_columns // max(problem.design.design.shape[1], 1)
    return features


def _model(problem: Problem, base: Block) -> _Quadratic | None:
    """Return the loss as a least squares problem, None where it is none, or too large a one."""
    n_samples, n_features = base.shape
    inner = base.inner if isinstance(base, CachedBlock) else base
    by_columns = (
        isinstance(inner, DenseBlock)
        and n_samples <= 2 * n_features
        and n_samples * n_features <= MOST_ENTRIES
    )
    small = n_features <= MOST_FEATURES and n_samples * n_features**2 <= MOST_WORK
    if not ((by_columns or small) and has_group_newton()):
        return None
    loss, origin = problem.loss, np.zeros(n_samples)
    curvature = loss.curvature(problem.y, origin, problem.weight)
    response = -loss.gradient(problem.y, origin, problem.weight)
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
    block = base if isinstance(base, CachedBlock) else CachedBlock(base)
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
