"""What many parts of the rows select: a model of ours is fitted to all of them at once.

Paths share each reading of the data; those of a lasso over an array in memory walk in lockstep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn.core.interfaces import Array, Mask, Rows
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.paths.ends import NumberOfFeatures
from atomlearn.core.paths.settings import Settings
from atomlearn.core.paths.shared import pool_of, shares_levels, task_of
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.schedule import drive
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.findings.lockstep import first_columns
from atomlearn.findings.settings import SETTINGS


def problem_of(model: Any, X: Any, y: NDArray[Any]) -> Problem | None:
    """Return what a model of ours minimizes for X and y, where that is one fit of plain columns."""
    if type(model) not in (AtomicRegressor, AtomicClassifier) or y.ndim != 1:
        return None
    if model.features != "linear" or model.relax or model.adaptive or model.form == "constrained":
        return None
    data = model._checked(X, y, None)
    return model._problems(data, model.norm, 1.0)[0] if len(data.targets) == 1 else None


def masks_of_parts(
    model: Any,
    X: Any,
    y: NDArray[Any],
    parts: Sequence[Rows],
    levels: Array,
    most: int | None,
    walks: bool,
) -> list[Mask] | None:
    """Return the columns that each part of the rows selects at any of the levels.

    None where the model is not one that can be fitted to several parts at once.

    Parameters
    ----------
    model : estimator, X, y : its data, parts : rows of each part.
    levels : weights of the penalty, falling.
    most : the first so many columns of each path; walks : whether columns in use between two of the
    levels may count.
    """
    model = clone(model)
    problem = problem_of(model, X, y)
    if problem is None or not shares_levels(problem, model._settings()):
        return None
    masks, left = [np.zeros(0, dtype=bool)] * len(parts), list(range(len(parts)))
    walks = walks and _is_lasso(problem) and isinstance(X, np.ndarray) and levels.size > 1
    # Their systems are solved afresh at each step.
    if walks and most and most <= min(SETTINGS.most_walked, SETTINGS.work_of_walks // X.size):
        array, ends = np.asarray(X, dtype=np.float64), (levels[0], levels[-1])
        found, sure = first_columns(array, problem.y, parts, most, *ends, problem.fit_intercept)
        masks, left = list(found), np.flatnonzero(~sure).tolist()
    if not left:
        return masks
    results = _together(problem, [parts[k] for k in left], levels, most, model._settings())
    for k, path in zip(left, results, strict=True):
        masks[k] = _first(path, problem.design.shape[1], most)
    return masks


def _is_lasso(problem: Problem) -> bool:
    """Whether it is least squares with equal weights and the plain l1 norm."""
    weights = l1_weights(problem.regularizer.norm, problem.design.shape[1])
    plain = weights is not None and bool((weights == 1.0).all())
    equal = np.ptp(problem.weight) == 0 and problem.loss.name == "squared"
    unscaled = problem.regularizer.form == "penalized" and not problem.tau
    return plain and equal and unscaled and problem.free is None and problem.offset is None


def _together(
    problem: Problem, parts: Sequence[Rows], levels: Array, most: int | None, settings: Settings
) -> list[list[Result]]:
    """Return the results of paths that share every reading, each ended at ``most`` columns."""
    end, waiting = None if most is None else NumberOfFeatures(most), []
    for rows, pool in zip(parts, pool_of(problem).of_each(len(parts)), strict=True):
        weight = problem.weight * np.bincount(rows, minlength=problem.y.size)
        weight *= problem.weight.sum() / weight.sum()
        reached = None if end is None else end.begin()
        part = replace(problem, weight=weight)
        waiting.append(task_of(part, levels, settings, pool, reached=reached))
    if drive(problem.design, waiting):
        raise KeyboardInterrupt("stability selection was interrupted")
    return [task.results for task in waiting]


def _first(results: Sequence[Result], n_columns: int, most: int | None) -> Mask:
    """Return the columns of any of these levels; the first ones, of the largest coefficients."""
    found = np.zeros(n_columns, dtype=bool)
    for result in results:
        new = result.columns[~found[result.columns]]
        room = new.size if most is None else most - int(found.sum())
        if new.size > room:
            sizes = np.zeros(n_columns)
            sizes[result.columns] = np.abs(result.weights)
            new = new[np.argsort(-sizes[new], kind="stable")[:room]]
        found[new] = True
        if most is not None and int(found.sum()) >= most:
            break
    return found
