"""Ridge-regularized fit of a few columns by a damped Newton method, to a given duality gap.

A is the block of these m columns, f the weighted mean loss as a function of the predictions, and
level the weight of the ridge. ``free`` are unpenalized columns, None if there are none; f is
minimized over their coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn._support import EPS, without
from atomlearn.core import (
    Array,
    Block,
    Certificate,
    Problem,
    free_columns,
    hessian,
    is_perfect,
    objective_at,
    optimal_intercept,
    prove,
)

#: Largest numbers of Newton steps of one fit, and of halvings in the line search of one step.
#: There are many halvings because losses with an exponential may overflow at the first trial.
STEPS = 200
HALVINGS = 60
#: If the predicted relative decrease is at most FINE, a step is accepted by its duality gap,
#: because the objectives before and after it differ only by rounding.
FINE = 1e-11


@dataclass(slots=True)
class FittedPoint:
    """An iterate of ``ridge_fit`` over a block A of m columns.

    ``weights`` : (m,) w. ``intercept`` : the best intercept b for w. ``prediction`` : (n,) A w + b.
    ``slope`` : (m,) negative gradient A'v - level w, where v is the negative gradient of f and
    level the weight of the ridge. ``certificate`` : objective and duality gap.
    """

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
    """Minimize f(A w + b) + level / 2 ||w||^2 over w and b by a damped Newton method.

    A is the block of m columns of the problem, f the weighted mean loss and level the weight of the
    ridge. The iteration ends when the duality gap is at most ``accuracy`` times the objective, when
    rounding prevents a further decrease, or at the deadline. The last iterate is returned.

    Parameters
    ----------
    problem : Problem
        A problem over a ``Block`` with a squared norm that equals ||w||_2 for all w of the block.
    accuracy : float
        Relative duality gap at which the iteration ends.
    gram : (m, m) float64, optional
        The constant Hessian A'CA of a quadratic f. If it is None, it is computed in each step.
    """
    block: Any = problem.design
    level = problem.regularizer.amount
    iterate = _certified(problem, np.zeros(block.shape[1]), 0.0)
    # Damping adds a multiple of ``_largest``, an upper bound on all Hessians, to the Hessian. It
    # needs a Hessian that changes, and bounded second derivatives.
    bounded = gram is None and math.isfinite(problem.loss.curvature_bounds[1])
    damping = _first_damping(problem, iterate.prediction) if bounded else 0.0
    for _ in range(STEPS):
        if iterate.certificate.gap <= accuracy * iterate.objective or is_perfect(
            problem, iterate.certificate
        ):
            break
        if problem.deadline.use_step():
            break
        H = _hessian(problem, block, iterate.prediction) if gram is None else gram
        if damping:
            H = H + damping * _largest(problem, block)
        step = inverse_with_ridge(H, level) @ iterate.slope
        candidate, length = _line_search(problem, iterate, step)
        # Without a decrease only more damping can help.
        if candidate is None and not (bounded and damping < 1.0):
            break
        # If f is almost linear near the iterate, a Newton step is too long, and the damping grows.
        if bounded and length < 0.25:
            damping = min(1.0, max(10.0 * damping, 1e-3))
        elif length == 1.0:
            damping = 0.1 * damping if damping > 1e-6 else 0.0
        iterate = candidate or iterate
    return iterate


def _certified(problem: Problem, weights: Array, intercept: float) -> FittedPoint:
    """Return the iterate at ``weights`` (m,), with the best intercept and its duality gap.

    The search for the best intercept starts at ``intercept``.
    """
    linear = problem.design.predict(weights)
    intercept = optimal_intercept(problem, linear, intercept)
    prediction = linear + intercept
    proof = prove(problem, None, weights, prediction)  # the duality gap, and the scores A'v
    slope = proof.scores.full() - problem.regularizer.amount * weights
    return FittedPoint(weights, intercept, prediction, slope, proof.certificate)


def _line_search(
    problem: Problem, point: FittedPoint, step: Array
) -> tuple[FittedPoint | None, float]:
    """Do a backtracking line search from ``point`` along ``step`` (m,).

    Return the new iterate and the accepted multiple of ``step``, at most 1. The iterate is None if
    no trial point satisfies the Armijo condition: the objective decreases by at least 1e-4 times
    the decrease that the slope predicts.
    """
    predicted = float(step @ point.slope)
    length = 1.0
    if not math.isfinite(predicted):
        return None, 0.0
    if predicted <= FINE * point.objective:
        # Such a small decrease is hidden by rounding, so the duality gap decides.
        candidate = _certified(problem, point.weights + step, point.intercept)
        better = candidate.certificate.gap < 0.9 * point.certificate.gap
        return (candidate if better else None), 1.0
    for _ in range(HALVINGS):
        weights = point.weights + length * step
        linear = problem.design.predict(weights)
        b = optimal_intercept(problem, linear, point.intercept)
        value = objective_at(problem, weights, linear + b)
        if value <= point.objective - 1e-4 * length * predicted:
            return _certified(problem, weights, b), length
        length *= 0.5 if math.isfinite(value) else 1e-3  # far too long, if the value overflows
    return None, 0.0


def inverse_with_ridge(H: Array, level: float) -> Array:
    """Return (H + level I)^-1 for a symmetric positive semidefinite H (m, m).

    The matrix is scaled to a unit diagonal before its eigendecomposition, so that columns of very
    different lengths keep their accuracy. Eigenvalues below the rounding error are replaced by it.
    All entries are NaN if H is not finite.
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
    """Return the initial damping: 1 if a sample has the second derivative 0, else 0.

    The quadratic model of such a sample is linear and may mislead a Newton step. The derivatives
    are those of the loss at ``prediction`` (n_samples,); samples of weight 0 do not matter.
    """
    curvature = problem.loss.curvature(problem.y, prediction, problem.weight)
    return float(np.any(curvature[problem.weight > 0.0] <= 0.0))


def _hessian(problem: Problem, block: Block, prediction: Array) -> Array:
    """Return the Hessian of f in w (m, m), with intercept and unpenalized columns minimized out.

    ``block`` has the m columns, and ``prediction`` (n_samples,) is the point.
    """
    # With unpenalized columns the loss is minimized over them; ``plain`` is the loss before.
    loss = problem.loss
    free = free_columns(problem.loss)
    plain = loss if free is None else free.inner
    # If the loss, or sparse unpenalized columns, couple the predictions of several samples, the
    # Hessian is not a weighted Gram matrix.
    if plain.coupled != 1 or (free is not None and not free.separable):
        return hessian(problem, block, prediction)
    if free is not None:
        # ``prediction`` is A w only; ``whole`` adds the fitted unpenalized columns.
        prediction = free.whole(problem.y, prediction, problem.weight)
    return _products(problem, block, plain.curvature(problem.y, prediction, problem.weight))


def _largest(problem: Problem, block: Block) -> Array:
    """Return an upper bound on all Hessians of f over the columns of ``block``, (m, m).

    In it, each second derivative of the loss has its upper bound over all predictions.
    """
    largest = problem.loss.curvature_bounds[1] * problem.weight
    free = free_columns(problem.loss)
    if free is not None and not free.separable:
        # Without the projection of ``_products`` the bound is larger, and still valid.
        return block.gram(largest)
    return _products(problem, block, largest)


def _products(problem: Problem, block: Block, curvature: Array) -> Array:
    """Return A'CA (m, m), with the intercept or unpenalized columns projected out of A.

    A has the columns of ``block``, and C is the diagonal matrix of ``curvature`` (n_samples,). The
    projection is orthogonal in the inner product of C.
    """
    free = free_columns(problem.loss)
    A = np.array(block.dense(), dtype=np.float64, order="F")
    if free is not None:
        A = without(A, free.basis, curvature)
    elif problem.fit_intercept and curvature.any():
        A -= (curvature @ A) / curvature.sum()
    return np.asarray((A.T * curvature) @ A)
