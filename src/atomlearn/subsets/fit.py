"""ridge_fit: the ridge fit of a few columns by Newton's method, to a relative accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn.core import (
    EPS,
    Array,
    Block,
    Certificate,
    Problem,
    block_of,
    free_columns,
    hessian,
    is_perfect,
    objective_at,
    optimal_intercept,
    prove,
    without,
)

#: Number of steps of one fit, and of halvings of one step: an exponential may overflow.
STEPS = 200
HALVINGS = 60
#: Relative decrease below which steps are judged by the gap, because objectives differ only by
#: rounding.
FINE = 1e-11


@dataclass(slots=True)
class FittedPoint:
    """Weights on all columns of a block with intercept, slope A'v - level w, and certificate."""

    weights: Array
    intercept: float
    prediction: Array
    slope: Array
    certificate: Certificate

    @property
    def objective(self) -> float:
        """The objective at this point."""
        return self.certificate.objective


def ridge_fit(problem: Problem, accuracy: float, gram: Array | None = None) -> FittedPoint:
    """Minimize f(A w + b) + level / 2 ||w||^2 over the columns of a block, which all may be used.

    Ends when the gap is at most ``accuracy`` times the objective, where rounding ends the steps, or
    at the deadline; the certificate is that of the returned point.

    Parameters
    ----------
    problem : Problem
        In the squared form, over a ``Block``, with a norm whose value is ||w||_2 there.
    accuracy : float
        Relative.
    gram : (m, m), optional
        The Hessian of f where f is quadratic; where f is not, it is formed in each step.
    """
    block = block_of(problem)
    level = problem.regularizer.amount
    at = _certified(problem, np.zeros(block.shape[1]), 0.0)
    bounded = gram is None and math.isfinite(problem.loss.curvature_bounds[1])
    damping = _first_damping(problem, at.prediction) if bounded else 0.0
    for _ in range(STEPS):
        if at.certificate.gap <= accuracy * at.objective or is_perfect(problem, at.certificate):
            break
        if problem.deadline.use_step():
            break
        H = _hessian(problem, block, at.prediction) if gram is None else gram
        if damping:
            H = H + damping * _largest(problem, block)
        found, length = _along(problem, at, inverse_with_ridge(H, level) @ at.slope)
        if found is None and not (bounded and damping < 1.0):
            break
        # Where f is straight a step leads too far: the largest curvature takes part.
        if bounded and length < 0.25:
            damping = min(1.0, max(10.0 * damping, 1e-3))
        elif length == 1.0:
            damping = 0.1 * damping if damping > 1e-6 else 0.0
        at = found or at
    return at


def _certified(problem: Problem, weights: Array, intercept: float) -> FittedPoint:
    linear = block_of(problem).predict(weights)
    intercept = optimal_intercept(problem, linear, intercept)
    prediction = linear + intercept
    price = prove(problem, None, weights, prediction)
    slope = price.scores.full() - problem.regularizer.amount * weights
    return FittedPoint(weights, intercept, prediction, slope, price.certificate)


def _along(problem: Problem, at: FittedPoint, step: Array) -> tuple[FittedPoint | None, float]:
    """Return a better point on the way of a step, None if there is none, and its length."""
    promised = float(step @ at.slope)
    length = 1.0
    if not math.isfinite(promised):
        return None, 0.0
    if promised <= FINE * at.objective:
        found = _certified(problem, at.weights + step, at.intercept)
        better = found.certificate.gap < 0.9 * at.certificate.gap
        return (found if better else None), 1.0
    for _ in range(HALVINGS):
        weights = at.weights + length * step
        linear = block_of(problem).predict(weights)
        b = optimal_intercept(problem, linear, at.intercept)
        reached = objective_at(problem, weights, linear + b)
        if reached <= at.objective - 1e-4 * length * promised:
            return _certified(problem, weights, b), length
        length *= 0.5 if math.isfinite(reached) else 1e-3
    return None, 0.0


def inverse_with_ridge(H: Array, level: float) -> Array:
    """Return (H + level I)^-1, H positive semidefinite up to rounding; NaN if H is not finite.

    Columns are scaled to one length first, so that a short one is not lost in the rounding of a
    long one. Eigenvalues are at least a rounding error.
    """
    scales = 1.0 / np.sqrt(np.maximum(np.diag(H), 0.0) + level)
    K = (H * scales) * scales[:, None]
    K[np.diag_indices(scales.size)] = 1.0
    if not np.isfinite(K).all():
        return np.full(K.shape, math.nan)
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, EPS * scales.size)
    return np.asarray(scales * ((vectors / values) @ vectors.T) * scales[:, None])


def _first_damping(problem: Problem, prediction: Array) -> float:
    """Return 1 if f is straight along some samples, so that its model is misleading, else 0."""
    curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
    return float(np.any(curvature[problem.weight > 0.0] <= 0.0))


def _hessian(problem: Problem, block: Block, prediction: Array) -> Array:
    """Return the Hessian of f over the columns, intercept and free columns minimized out."""
    loss = problem.loss
    free = free_columns(problem.loss)
    plain = loss if free is None else free.inner
    if plain.coupled != 1 or (free is not None and not free.separable):
        return hessian(problem, block, prediction)
    if free is not None:
        prediction = free.whole(problem.y, prediction, problem.weight)
    return _products(problem, block, plain.curvature(problem.y, prediction, problem.weight))


def _largest(problem: Problem, block: Block) -> Array:
    """Return the Hessian of f at the largest possible curvature of all samples."""
    largest = problem.loss.curvature_bounds[1] * problem.weight
    free = free_columns(problem.loss)
    if free is not None and not free.separable:
        return block.gram(largest)
    return _products(problem, block, largest)


def _products(problem: Problem, block: Block, curvature: Array) -> Array:
    """Return A'CA, with the intercept or free columns projected out of A in the metric C."""
    free = free_columns(problem.loss)
    A = np.array(block.dense(), dtype=np.float64, order="F")
    if free is not None:
        A = without(A, free.basis, curvature)
    elif problem.fit_intercept and curvature.any():
        A -= (curvature @ A) / curvature.sum()
    return np.asarray((A.T * curvature) @ A)
