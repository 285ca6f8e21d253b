"""Selections on many subsamples of the rows, fitted simultaneously.

Paths share each pass over the data; a lasso of few columns is left to scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from atomlearn.core import (
    Array,
    Mask,
    NumberOfFeatures,
    Problem,
    Result,
    Rows,
    Settings,
    bare_loss,
    l1_weights,
    largest_useful_alpha,
    training_part,
)
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.regressor import AtomicRegressor

#: Number of columns up to which coordinate descent on a half is faster than paths that share
#: passes. It is 2 to 6 times faster at 1,000 and 3,000 columns, and 4 times slower at 20,000.
FEW_COLUMNS = 4_000


def own_problem(model: Any, X: Any, y: NDArray[Any]) -> Problem | None:
    """Return the optimization problem of an unfitted model at alpha = 1, or None.

    model : the estimator. X, y : its data. None unless a fit of the model is a single penalized
    problem on the columns of X themselves: without feature maps, standardization, several targets,
    or a penalty that selects nothing.
    """
    if type(model) not in (AtomicRegressor, AtomicClassifier) or np.ndim(y) != 1:
        return None
    if model.features != "linear" or model.relax or model.form == "constrained":
        return None
    if model.standardize:  # standardized by the deviations of the rows of each fit
        return None
    if not model.l1_ratio:  # a ridge term selects nothing
        return None
    data = model._checked(X, y, None)
    if len(data.targets) > 1:
        return None
    problem: Problem = model._problems(data, model.norm, 1.0, model.l1_ratio)[0]
    return problem


def automatic_alphas(model: Any, X: Any, y: Any, alphas: Any) -> Array:
    """Return ten values of alpha, from 0.9 to 0.1 of the smallest alpha without selection.

    model : an unfitted estimator. X, y : its data. alphas : the user's argument, which must be None
    or "auto".
    """
    is_penalized = (
        type(model) in (AtomicRegressor, AtomicClassifier) and model.form != "constrained"
    )
    if alphas not in (None, "auto") or not is_penalized:
        raise ValueError(
            f"alphas must be an array, or 'auto' for AtomicRegressor or AtomicClassifier with a "
            f"penalty; got alphas={alphas!r} for {type(model).__name__}"
        )
    model = clone(model)
    problems = model._problems(model._checked(X, y, None), model.norm, 1.0, model.l1_ratio)
    # The strength of the norm, which is the share ``l1_ratio`` of alpha, is converted to alpha.
    largest = max(map(largest_useful_alpha, problems)) / (model.l1_ratio or 1.0)
    return largest * np.geomspace(0.9, 0.1, 10)


def masks_of_parts(
    model: Any, X: Any, y: NDArray[Any], parts: Sequence[Rows], levels: Array, limit: int | None
) -> list[Mask] | None:
    """Return a mask (p,) per part of the rows: the columns selected at any of the levels.

    None if the model cannot be fitted to several parts at once.

    Parameters
    ----------
    model : estimator
        An unfitted model.
    X, y : array-like
        Its data.
    parts : sequence of arrays
        The rows of each part.
    levels : array
        Values of alpha, decreasing.
    limit : int or None
        Maximum number of columns per part: those that enter first.
    """
    model = clone(model)
    # Several fits share each reading of X only for some norms, losses and solvers.
    problem = own_problem(model, X, y)
    if problem is None or not model._settings().shares_levels(problem):
        return None
    n_columns = problem.design.shape[1]
    if isinstance(X, np.ndarray) and n_columns <= FEW_COLUMNS and _is_lasso(problem):
        # Column-major order, which the solver reads, is made by a single copy.
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        paths: Iterable[Iterable[Array]] = (
            _lasso_sizes(
                columns.take(rows, axis=1).T,
                problem.y[rows],
                problem.fit_intercept,
                levels,
                model.tol,
            )
            for rows in parts
        )
    else:
        # The strength of the norm is the share ``l1_ratio`` of alpha.
        levels = levels * model.l1_ratio
        joint_paths = _joint_paths(problem, parts, levels, limit, model._settings())
        paths = ((np.abs(result.coef) for result in results) for results in joint_paths)
    return [first_columns(sizes, limit) for sizes in paths]


def _is_lasso(problem: Problem) -> bool:
    """Return whether the problem is least squares with equal weights and the plain l1 norm."""
    weights = l1_weights(problem.regularizer.norm, problem.design.shape[1])
    has_equal_weights = weights is not None and bool((weights == 1.0).all())
    is_least_squares = np.ptp(problem.weight) == 0 and problem.loss.name == "squared"
    is_penalized = problem.regularizer.form == "penalized" and not problem.tau
    has_no_offset = bare_loss(problem.loss) is problem.loss
    return has_equal_weights and is_least_squares and is_penalized and has_no_offset


def _joint_paths(
    problem: Problem, parts: Sequence[Rows], levels: Array, limit: int | None, settings: Settings
) -> list[list[Result]]:
    """Return the path of each part (training rows), fitted with shared passes over the columns.

    levels : weights of the penalty, decreasing. limit : number of columns at which a path ends,
    None for no end. settings : those of all fits. ``problem`` is the problem over all rows and
    ``parts`` are the rows of each part.
    """
    end = None if limit is None else NumberOfFeatures(limit)
    tasks = [
        (training_part(problem, rows), levels, None if end is None else end.begin())
        for rows in parts
    ]
    paths = settings.paths(problem, tasks)
    if paths is None:
        raise KeyboardInterrupt("stability selection was interrupted")
    return paths


def _lasso_sizes(
    X: Array, y: Array, centered: bool, levels: Array, tolerance: float
) -> Iterator[Array]:
    """Yield the absolute coefficients (p,) of a lasso at each level in turn; X is modified.

    X, y : rows and targets of one part. centered : whether there is an intercept. levels : values
    of alpha, decreasing. tolerance : of scikit-learn's coordinate descent.
    """
    weights = None
    if centered:
        X -= X.mean(axis=0)
        y = y - y.mean()
    for level in levels:
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            start = {"coef_init": weights, "check_input": False, "precompute": False}
            weights = lasso_path(X, y, alphas=[level], tol=tolerance, **start)[1][:, 0]
        yield np.abs(weights)


def first_columns(sizes: Iterable[Array], limit: int | None) -> Mask:
    """Return a mask of the columns that are nonzero at any level, at most ``limit`` of them.

    sizes : absolute coefficients (p,) per level, in decreasing order of alpha. Columns that enter
    earlier come first; among those that enter at one level, the largest.
    """
    selected = np.zeros(0, dtype=bool)
    for sizes_at_level in sizes:
        selected = selected if selected.size else np.zeros(sizes_at_level.size, dtype=bool)
        entering = np.flatnonzero((sizes_at_level > 0) & ~selected)
        n_left = entering.size if limit is None else limit - int(selected.sum())
        selected[entering[np.argsort(-sizes_at_level[entering], kind="stable")[:n_left]]] = True
        if limit is not None and selected.sum() >= limit:
            break
    return selected
