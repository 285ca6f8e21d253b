"""What many parts of the rows select: a model of ours is fitted to all of them at once.

Of an array in memory each part is copied, and its path takes its own columns alone; of other data
all paths share each reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn._kernels import share_out
from atomlearn.core.data.dense import DenseDesign
from atomlearn.core.interfaces import Array, Mask, Rows
from atomlearn.core.paths.ends import End, NumberOfFeatures
from atomlearn.core.paths.path import path_of
from atomlearn.core.paths.settings import Settings
from atomlearn.core.paths.shared import pool_of, shares_levels, task_of
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.problem.rounding import Measured
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
    model: Any, X: Any, y: NDArray[Any], parts: Sequence[Rows], levels: Array, most: int | None,
    walks: bool,
) -> list[Mask] | None:  # fmt: skip
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
    if problem is None:
        return None
    walks = walks and _is_lasso(problem) and isinstance(X, np.ndarray) and levels.size > 1
    # Their systems are solved afresh at each step.
    if walks and most and most <= min(SETTINGS.most_walked, SETTINGS.work_of_walks // X.size):
        array = np.asarray(X, dtype=np.float64)
        found, sure = first_columns(
            array, problem.y, parts, most, levels[0], levels[-1], problem.fit_intercept
        )
        masks = list(found)
        left = np.flatnonzero(~sure).tolist()
        others = _by_paths(problem, [parts[k] for k in left], levels, most, model._settings())
        if others is None:
            return None
        for k, mask in zip(left, others, strict=True):
            masks[k] = mask
        return masks
    return _by_paths(problem, parts, levels, most, model._settings())


def _is_lasso(problem: Problem) -> bool:
    """Whether it is least squares with equal weights and the plain l1 norm."""
    weights = problem.regularizer.norm.l1_weights(problem.design.shape[1])
    plain = weights is not None and bool((weights == 1.0).all())
    equal = np.ptp(problem.weight) == 0 and problem.loss.name == "squared"
    return (
        plain and equal and problem.regularizer.form == "penalized" and not problem.tau
        and problem.free is None and problem.offset is None
    )  # fmt: skip


def _by_paths(
    problem: Problem, parts: Sequence[Rows], levels: Array, most: int | None, settings: Settings
) -> list[Mask] | None:
    """Return the masks from paths, each of which ends at ``most`` columns."""
    if not shares_levels(problem, settings):
        return None
    end = None if most is None else NumberOfFeatures(most)
    stored = problem.design.stored()
    if stored is None or problem.offset is not None or problem.free is not None:
        found = _together(problem, parts, levels, end, settings)
    else:
        found = _of_copies(problem, stored, parts, levels, end, settings)
    return [_first(results, problem.design.shape[1], most) for results in found]


def _of_copies(
    problem: Problem, stored: NDArray[Any], parts: Sequence[Rows], levels: Array, end: End | None,
    settings: Settings,
) -> list[list[Result]]:  # fmt: skip
    """Return the results of paths over the rows of each part alone, which are copied."""
    found: list[list[Result]] = [[] for _ in parts]

    def walk(k: int) -> None:
        weight = problem.weight[parts[k]]
        part = replace(
            problem, design=DenseDesign(stored[parts[k]]), y=problem.y[parts[k]],
            weight=weight * (problem.weight.sum() / weight.sum()), measured=Measured(),
        )  # fmt: skip
        path = path_of(part, levels, settings, until=end)
        if path.interrupted:
            raise KeyboardInterrupt("stability selection was interrupted")
        found[k] = path.results

    share_out(walk, len(parts), float(stored.size) * levels.size * len(parts))
    return found


def _together(
    problem: Problem, parts: Sequence[Rows], levels: Array, end: End | None, settings: Settings
) -> list[list[Result]]:
    """Return the results of paths that share every reading of the data."""
    found = []
    for first in range(0, len(parts), SETTINGS.parts_together):
        some, waiting = parts[first : first + SETTINGS.parts_together], []
        pools = pool_of(problem).of_each(len(some))
        for rows, pool in zip(some, pools, strict=True):
            weight = problem.weight * np.bincount(rows, minlength=problem.y.size)
            weight *= problem.weight.sum() / weight.sum()
            reached = None if end is None else end.begin()
            part = replace(problem, weight=weight)
            waiting.append(task_of(part, levels, settings, pool, reached=reached))
        if drive(problem.design, waiting):
            raise KeyboardInterrupt("stability selection was interrupted")
        found += [task.results for task in waiting]
    return found


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
