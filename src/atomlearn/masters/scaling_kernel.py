"""Newton's method on scalings in one call of a kernel, for a quadratic loss on a small block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn._kernels import group_newton, has_group_newton
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
#: Groups that may enter in a step: at least so many, and this share of those in use.
LEAST_ENTERING = 20
SHARE_ENTERING = 0.5


@dataclass(frozen=True, slots=True)
class _Quadratic:
    """f(A w + b) less a constant, b minimised out: 1/2 w'Gw - h'w + 1/2 ||target||^2."""

    gram: Array
    linear: Array
    squared_target: float


def steps_by_kernel(
    problem: Problem, best: Candidate, partition: Partition, limit: Array, gap_target: float
) -> tuple[Candidate, int]:
    """Return the point the kernel reaches from the best one, and its steps; 0: not for it."""
    base, positions = unique_columns(block_of(problem))
    n_samples, n_features = base.shape
    small = n_features <= MOST_FEATURES and n_samples * n_features**2 <= MOST_WORK
    if not (small and problem.loss.is_quadratic and has_group_newton()):
        return best, 0
    model = _model(problem, base)
    if model is None:
        return best, 0
    start = best.refit
    order, starts = partition.order
    scalings, slopes, outcome = group_newton(
        model.gram,
        model.linear,
        starts,
        positions[order],
        limit,
        partition.norms(start.weights) / limit,
        gram=True,
        squared_target=model.squared_target,
        gap_target=0.9 * gap_target,
        least=LEAST_ENTERING,
        share=SHARE_ENTERING,
    )
    weights = scalings[partition.labels] * slopes[positions]
    trial = certified(problem, weights, None, start.intercept)
    return (trial if trial.improves(best) else best), max(outcome.steps, 1)


def _model(problem: Problem, base: Block) -> _Quadratic | None:
    """Return the loss as a function of the weights, None where it has no least squares form."""
    loss, weight = problem.loss, problem.weight
    origin = np.zeros(problem.y.size)
    curvature = loss.curvature(problem.y, origin, weight)
    if np.array_equal(curvature, weight):
        curvature = weight  # the same array from call to call: Gram matrices are kept for it
    response = -loss.gradient(problem.y, origin, weight)
    total = float(curvature.sum())
    if not total > 0:
        return None
    if problem.fit_intercept:
        response -= curvature * (float(response.sum()) / total)
    flat = curvature == 0
    if response[flat].any():
        return None
    squares = np.divide(response**2, curvature, out=np.zeros_like(response), where=~flat)
    block = base if isinstance(base, CachedBlock) else CachedBlock(base)
    gram = block.growing_gram(curvature, problem.fit_intercept).matrix
    return _Quadratic(gram, block.transpose_dot(response), float(squares.sum()))
