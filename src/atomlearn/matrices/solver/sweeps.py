"""Sweeps: factors of low-rank terms fitted in turn, row by row, between two passes.

||W||_* = min (||L||^2 + ||R||^2) / 2 over W = L R' (Rennie, Srebro 2005): with R held, L is as many
ridge regressions as it has rows, for losses other than the squared one a step of Newton of each.
A span can turn only into the directions that the last pass added to it; sweeps turn it freely, at
about the price of a few products with its factors. They change the point, never a bound: what they
reach is priced like any other (local search within a greedy method: Laue 2012; Zhang, Yu,
Schuurmans 2012).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.losses import pieces
from atomlearn.core.problem.problem import Problem
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.coordinates import Coordinates
from atomlearn.matrices.solver.spans import Span


def can_sweep(problem: Problem, term: Coordinates) -> bool:
    """Return whether the factors of this term can be fitted in turn.

    The price of its gauge must be known beforehand, which the penalized form alone has.
    """
    return (
        term.turns_freely
        and term.rank <= SETTINGS.sweep_rank
        and term.design.of_matrix.has_ridge_steps
        and problem.regularizer.form == "penalized"
        and problem.tau == 0.0
        and problem.loss.coupled == 1
    )


def swept(
    problem: Problem, term: Span, x: Array, linear: Array, intercept: float, enough: float
) -> tuple[Span, Array, Array]:
    """Return the term, its diagonal S and the predictions without intercept after sweeps.

    x : S of a compressed term; linear : predictions of all terms without intercept; enough : a
    sweep that gains less than this is the last.
    """
    steps = term.design.of_matrix.ridge_steps()
    price = problem.regularizer.amount * term.term.factor
    root = np.sqrt(np.diag(term.core(x)))
    left, right = term.left * root, term.right * root
    others = linear - steps.predictions(left, right)

    def objective(left: Array, right: Array, linear: Array) -> float:
        """The loss and the price of the factors, without the gauges of other terms."""
        size = float((left**2).sum() + (right**2).sum())
        return problem.loss_value(linear, intercept) + 0.5 * price * size

    first = after = objective(left, right, linear)
    while True:
        before = after
        for is_left in (True, False):
            fit = steps.left if is_left else steps.right
            factor = fit(*_derivatives(problem, linear, intercept), left, right, price)
            turned_left, turned_right = (factor, right) if is_left else (left, factor)
            trial = steps.predictions(turned_left, turned_right)
            trial += others
            value = objective(turned_left, turned_right, trial)
            if value < after:
                left, right, linear, after = turned_left, turned_right, trial, value
        left, right = _balanced(left, right)
        after = objective(left, right, linear)
        rank = left.shape[1]
        least = max(enough, SETTINGS.sweep_gain * rank * (first - after))
        if not rank or before - after <= least or problem.deadline.passed:
            break
    root = np.linalg.norm(left, axis=0)
    turned = replace(term, left=left / root, right=right / root)
    return turned, np.diag(root**2).reshape(-1), linear


def _derivatives(problem: Problem, linear: Array, intercept: float) -> tuple[Array, Array]:
    """Return the first and the second derivatives of the loss at each sample."""
    slope = problem.loss_gradient(linear, intercept)
    curvature = np.empty_like(slope)
    for part, own in pieces.each(problem.loss, slope.size):
        z = pieces.shifted(linear[part], intercept)
        curvature[part] = own.curvature(problem.y[part], z, problem.weight[part])
    return slope, curvature


def _balanced(left: Array, right: Array) -> tuple[Array, Array]:
    """Return the singular vectors of the product, times the roots of its values that are not 0."""
    left, left_core = np.linalg.qr(left)
    right, right_core = np.linalg.qr(right)
    P, values, Qt = np.linalg.svd(left_core @ right_core.T)
    kept = values > SETTINGS.rounding * float(values.max(initial=0.0))
    root = np.sqrt(values[kept])
    return left @ (P[:, kept] * root), right @ (Qt[kept].T * root)
