"""Levels (weights of the norm, or radii): the most regularized useful one, and grids from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from atomlearn.core.interfaces import Array, Form, Norm, Scores, is_number, whole_number
from atomlearn.core.problem.problem import (
    Problem,
    center_targets,
    changed,
    loss_value,
    negative_gradient,
    negligible_objective,
    optimal_intercept,
    over_sums,
)
from atomlearn.core.problem.regularizer import ridge_per_level

#: Last level over first one (first over last for radii), for about the same range of fits.
RATIOS: dict[str, float] = {"penalized": 1e-2, "squared": 1e-4, "constrained": 1e-3}


def scores_at_zero(problem: Problem) -> Scores:
    """Return the problem's scores z = X'v at w = 0 with the optimal intercept, by one pass."""
    problem = over_sums(center_targets(problem))
    return problem.design.scores(dual_at_zero(problem))


def dual_at_zero(problem: Problem) -> Array:
    """Return the dual vector v = -f' (n_samples,) at w = 0 with the optimal intercept.

    f' is the gradient of the problem's loss in the predictions.
    """
    return negative_gradient(problem, _prediction_at_zero(problem))


def _prediction_at_zero(problem: Problem) -> Array:
    """Return the problem's predictions (n_samples,) at w = 0: the optimal intercept for each."""
    linear = np.zeros(problem.design.shape[0])
    return linear + optimal_intercept(problem, linear)


def largest_useful_alpha(problem: Problem, zero: Scores | None = None) -> float:
    """Return the most regularized useful level, computed from the duality gap at w = 0.

    With z the scores X'v at w = 0 (intercept optimal), F(0) the objective there, F* the optimum,
    and gauge° the polar (dual norm), it is

        penalized    gauge°(z)                          w = 0 is optimal at larger levels
        squared      gauge°(z)^2 / (2 * 0.01 * F(0))    F(0) - F* <= 0.01 F(0) at larger levels
        constrained  0.01 * F(0) / gauge°(z)            F(0) - F* <= 0.01 F(0) at smaller radii

    The squared and the constrained form have no level at which w = 0 is exact. For them it is the
    level at which the gap of w = 0 proves that no fit improves the objective by more than 1%.
    The amount of ``problem.regularizer`` does not matter, nor does a ridge term. The function makes
    one pass over the data, unless ``zero`` has the scores at w = 0.

    If w = 0 is optimal at every level, because all scores are 0 or the intercept fits the targets
    exactly, the result is 1.0: any level gives the same solution.
    """
    rounding = negligible_objective(problem)
    problem = center_targets(problem)
    prediction = _prediction_at_zero(problem)
    scores = scores_at_zero(problem) if zero is None else zero
    polar = problem.regularizer.norm.polar(scores)
    if polar == math.inf:
        raise ValueError(
            "the first alpha is not known where a column of weight 0 has bounds; give alphas="
        )
    at_zero = loss_value(problem, prediction)
    share = 0.01  # of F(0)
    # Without scores above 0, or if the intercept fits the targets to rounding, any level will do.
    if polar <= 0.0 or at_zero <= rounding:
        return 1.0
    if problem.regularizer.form == "penalized":
        return polar
    if problem.regularizer.form == "squared":
        return polar * polar / (2.0 * share * at_zero)
    return share * at_zero / polar


def alpha_grid(
    largest: float, n_alphas: int = 100, ratio: float | None = None, form: Form = "penalized"
) -> Array:
    """Return ``n_alphas`` numbers in geometric progression, the most regularized first.

    Alphas fall from ``largest`` to ``ratio * largest``; radii of the constrained form rise from
    ``largest`` to ``largest / ratio``. ``ratio`` None means 1e-2 for the penalized form, 1e-4
    for the squared one and 1e-3 for the constrained one.
    """
    if form not in get_args(Form):
        raise ValueError(f"form must be one of {get_args(Form)}, got {form!r}")
    n_alphas = whole_number("alpha_grid", "n_alphas", n_alphas)
    ratio = RATIOS[form] if ratio is None else ratio
    if not (is_number(ratio) and 0 < ratio <= 1):
        raise ValueError(f"ratio must be a number in (0, 1], last alpha over first, got {ratio!r}")
    if not (math.isfinite(largest) and largest > 0):
        raise ValueError(f"largest must be positive and finite, got {largest}")
    end = largest / ratio if form == "constrained" else largest * ratio
    grid: Array = np.geomspace(largest, end, n_alphas)
    return grid


def level_grids(
    problems: Sequence[Problem], norms: Sequence[Norm], n_levels: int, ratio: float | None
) -> Array:
    """Return a grid of levels for each norm, (n_norms, n_levels).

    problems : one for each output, on the same data. norms : candidates, which replace the norm of
    the problems. n_levels, ratio : see ``alpha_grid``.

    A grid begins at the most regularized of the largest useful levels of the outputs. Each output
    takes one pass over the data.
    """
    zeros = [scores_at_zero(problem) for problem in problems]
    form = problems[0].regularizer.form
    # The most regularized one is the smallest radius, or the largest level.
    most_regularized = min if form == "constrained" else max
    grids = []
    for norm in norms:
        largest = [
            largest_useful_alpha(changed(problem, norm=norm), zero)
            for problem, zero in zip(problems, zeros, strict=True)
        ]
        grids.append(alpha_grid(most_regularized(largest), n_levels, ratio, form))
    return np.array(grids)


def with_l1_ratio(problem: Problem, l1_ratio: float) -> Problem:
    """Return the problem whose norm has the share ``l1_ratio`` of the penalty along a path.

    The ridge term has the rest: tau = level * (1 - l1_ratio) / l1_ratio, and ``changed``
    changes tau with the level. The constrained form has no ridge term and is returned unchanged.
    """
    penalty = problem.regularizer
    tau = penalty.amount * ridge_per_level(l1_ratio, penalty.form)
    return replace(problem, tau=tau) if penalty.form != "constrained" else problem


def l1_ratio_of(problem: Problem) -> float:
    """Return the share of the norm in the problem's penalty; 1.0 for the constrained form."""
    penalty = problem.regularizer
    penalized = penalty.form != "constrained"
    return penalty.amount / (penalty.amount + problem.tau) if penalized else 1.0


def check_levels(levels: object, form: Form, name: str = "levels") -> Array:
    """Return levels as a float64 array, the most regularized first; raise if they are invalid.

    ``levels`` must be a one-dimensional array of positive numbers, radii if ``form`` is
    "constrained". ``name`` is the word for them in error messages.
    """
    try:
        values = np.array(levels)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of positive numbers: {error}") from error
    if values.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be an array of positive numbers, got {levels!r}")
    values = values.astype(np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            f"{name} must be a one-dimensional array of at least one number, got shape "
            f"{values.shape}; for a single one write [value], for a grid of n write n_{name}=n"
        )
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"{name} must all be positive and finite, got {values.tolist()[:10]}")
    ordered = np.sort(values)
    return ordered if form == "constrained" else ordered[::-1].copy()
