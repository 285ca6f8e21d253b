"""What many parts of the rows select, read together: a model of ours is fitted to all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn._kernels import single_threaded_blas
from atomlearn.core.paths.pool import Pool
from atomlearn.core.paths.readings import drive
from atomlearn.core.paths.settings import Settings
from atomlearn.core.paths.speculation import speculated, speculates
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.findings.lockstep import first_columns

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]

#: Columns up to which all parts walk in lockstep: their systems are solved afresh at each step.
FEW = 100
#: Parts whose paths are on their way together, each with a Gram matrix of its own.
AT_ONCE = 40


def problem_of(model: Any, X: Any, y: NDArray[Any]) -> Problem | None:
    """Return what a model of ours minimizes for X and y, where that is one fit of plain columns."""
    if type(model) not in (AtomicRegressor, AtomicClassifier) or y.ndim != 1:
        return None
    if model.features != "linear" or model.relax or model.adaptive or model.form == "constrained":
        return None
    data = model._checked(X, y, None)
    return model._problems(data, model.norm, 1.0)[0] if len(data.targets) == 1 else None


def masks_of_parts(
    model: Any, X: Any, y: NDArray[Any], parts: Sequence[Rows], levels: Array, most: int | None
) -> list[Mask] | None:
    """Return the columns that each part of the rows selects at any of the levels.

    None where the model is not one that can be fitted to several parts at once.

    Parameters
    ----------
    model : estimator, X, y : its data, parts : rows of each part.
    levels : weights of the penalty, falling.
    most : the first so many columns of each path.
    """
    model = clone(model)
    problem = problem_of(model, X, y)
    if problem is None:
        return None
    walks = most is not None and _is_lasso(problem) and isinstance(X, np.ndarray)
    if walks and most <= FEW and levels.size > 1:  # type: ignore[operator]
        array = np.asarray(X, dtype=np.float64)
        found, sure = first_columns(
            array, problem.y, parts, int(most or 0), levels[0], levels[-1], problem.fit_intercept
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
    """Return the masks from paths that share every reading of the data."""
    if not speculates(problem, max(levels.size, 2), settings):
        return None
    masks: list[Mask] = []
    pool = Pool(problem)
    for first in range(0, len(parts), AT_ONCE):
        waiting = []
        for rows in parts[first : first + AT_ONCE]:
            weight = problem.weight * np.bincount(rows, minlength=problem.y.size)
            weight *= problem.weight.sum() / weight.sum()
            part = replace(problem, weight=weight)
            waiting.append(speculated(part, levels, settings, pool))
        with single_threaded_blas():
            outcomes = drive(problem.design, waiting)
        if any(outcome.interrupted for outcome in outcomes):
            raise KeyboardInterrupt("stability selection was interrupted")
        n_columns = problem.design.shape[1]
        masks += [_first(outcome.results, n_columns, most) for outcome in outcomes]
    return masks


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
