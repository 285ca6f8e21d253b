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
    if problem.free is not None and np.array_equal(free, problem.free):
        return replace(problem, regularizer=regularizer)
    Z = np.asarray(problem.design.gather(free).dense(), dtype=np.float64)
    # Samples without weight have no say, and would have one in the scale of the basis.
    Z = np.where((problem.weight > 0.0)[:, None], Z, 0.0)
    intercept, before = problem.fit_intercept, problem.loss.free
    if before is not None:
        # Intercepts of tasks are free columns among others: steps are of all together.
        intercept, own = before.intercept, before.columns
        own = own.toarray() if before.is_sparse else own[:, _count(problem) :]
        Z = np.hstack([Z, own])
    loss = FreeColumns(problem.plain_loss, Z, intercept)
    return replace(problem, loss=loss, fit_intercept=False, free=free, regularizer=regularizer)


def _count(problem: Problem) -> int:
    """Return how many of the free columns are columns of X."""
    return 0 if problem.free is None else problem.free.size


def free_part(problem: Problem, prediction: Array) -> tuple[Array, float]:
    """Return the coefficients of the free columns of X, and their intercept less ``origin``."""
    g, b = problem.loss.free.free_part(problem.y, prediction, problem.weight)
    return g[: _count(problem)], b


def task_intercepts(problem: Problem, prediction: Array) -> Array:
    """Return the intercepts of tasks that have one each, (n_tasks,); of other problems none."""
    if problem.loss.free is None:
        return np.zeros(0)
    g, _ = problem.loss.free.free_part(problem.y, prediction, problem.weight)
    return np.asarray(g[_count(problem) :])


def raised_by_floats(problem: Problem, prediction: Array) -> float:
    """Return by how much f can be larger at the free coefficients as they are given back.

    What the sum Z g + b of floats is off by counts as well, or a fit that is perfect in floats
    would be said to be one.
    """
    free, y, s = problem.loss.free, problem.y, problem.weight
    g, b = free.free_part(y, prediction, s)
    b = (b + problem.origin) - problem.origin
    value = free.inner.value(y, prediction + (free.columns @ g + b), s)
    off = growth(g.size + 1) * (abs(free.columns) @ np.abs(g) + abs(b))
    lost = of_errors(problem, np.broadcast_to(off, y.shape), prediction)
    return float(max(value - problem.loss_value(prediction), 0.0) + lost)
