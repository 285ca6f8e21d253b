"""Columns of a problem that nothing penalizes: how they leave the penalty for the loss."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.losses import FreeColumns
from atomlearn.core.problem.checks import check_free
from atomlearn.core.problem.rounding import growth, of_errors

if TYPE_CHECKING:
    from atomlearn.core.problem.problem import Problem


def freed(problem: Problem, unpenalized: object) -> Problem:
    """Return the problem with these columns free of any penalty, gathered once.

    Those that it has free already stay so, and those join them that the norm leaves free. As
    columns of X they stay where they are: what they explain has no scores left, so that a norm
    that does not grow where an entry is set to 0 leaves them at 0.
    """
    n_features, norm = problem.design.shape[1], problem.regularizer.norm
    asked = [np.zeros(0, dtype=np.int64) if problem.free is None else problem.free]
    if unpenalized is not None:
        asked.append(check_free(unpenalized, n_features))
    free, norm = norm.without(np.unique(np.concatenate(asked)), n_features)
    if not free.size:
        return problem
    regularizer = replace(problem.regularizer, norm=norm)
    inner, intercept = problem.loss, problem.fit_intercept
    if problem.free is not None:
        if np.array_equal(free, problem.free):
            return replace(problem, regularizer=regularizer)
        intercept = intercept or problem.loss.free.intercept
        inner = problem.plain_loss
    Z = np.asarray(problem.design.gather(free).dense(), dtype=np.float64)
    # Samples without weight have no say, and would have one in the scale of the basis.
    Z = np.where((problem.weight > 0.0)[:, None], Z, 0.0)
    # Intercepts of classes are free columns among others: steps are of all together.
    bare, own = inner.apart(problem.y, problem.weight)
    loss = FreeColumns(bare, np.hstack([Z, own]), intercept, inner if own.size else None)
    return replace(problem, loss=loss, fit_intercept=False, free=free, regularizer=regularizer)


def free_part(problem: Problem, prediction: Array) -> tuple[Array, float]:
    """Return the coefficients of the free columns, and their intercept less ``origin``."""
    g, b = problem.loss.free.free_part(problem.y, prediction, problem.weight)
    return g, b


def raised_by_floats(problem: Problem, prediction: Array) -> float:
    """Return by how much f can be larger at the free coefficients as they are given back.

    What the sum Z g + b of floats is off by counts as well, or a fit that is perfect in floats
    would be said to be one.
    """
    g, b = free_part(problem, prediction)
    b = (b + problem.origin) - problem.origin
    loss, y, s = problem.loss, problem.y, problem.weight
    value = loss.free.value_at(y, prediction, s, g, b)
    off = np.broadcast_to(growth(g.size + 1) * loss.free.free_size(g, b), y.shape)
    lost = of_errors(problem, off, prediction)
    return float(max(value - problem.loss_value(prediction), 0.0) + lost)
