"""The level of a path by what it predicts for rows that are left out, one at a time, by a formula.

Leaving out row i moves the fit on its columns S by one Newton step, to first order:

    z_i without i  =  z_i + H_ii f_i' / (1 - H_ii f_i''),    H = A (A' diag(f'') A)^-1 A',

with A the columns of S beside a column of ones; exact for least squares while no column enters or
leaves. One path then does what five folds need five of.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from atomlearn.core.data.convert import as_design
from atomlearn.core.interfaces import Loss, Norm
from atomlearn.core.paths.levels import largest_useful_level, level_grid
from atomlearn.core.paths.path import PathResult, path_of
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer

Array = NDArray[np.float64]


def has_formula(loss: Loss, norm: Norm, n_columns: int) -> bool:
    """Return whether the formula knows the loss (smooth, a sum over rows) and the norm (l1)."""
    smooth = loss.coupled == 1 and loss.smoothed(1.0) is None
    return smooth and norm.l1_weights(n_columns) is not None


def path_with_scores(
    X: Array, y: Array, loss: Loss, norm: Norm, n_levels: int, ratio: float, gap: float
) -> tuple[PathResult, Array]:
    """Return a path with an intercept and the mean loss of left-out rows at each of its levels.

    ``ratio`` : last level over the first. Infinite where as many columns as rows are in use.

    References
    ----------
    K. Rahnama Rad, A. Maleki. A scalable estimate of the out-of-sample prediction error via
    approximate leave-one-out cross-validation. JRSS B 82 (2020) 965-996.
    """
    problem = Problem.build(
        as_design(X), y, loss, Regularizer(norm, "penalized", 1.0), fit_intercept=True
    )
    levels = level_grid(largest_useful_level(problem), n_levels, ratio)
    found = path_of(problem, levels, Settings(gap))
    scores = [
        _left_out(X[:, result.columns], problem, result.weights, result.intercept)
        for result in found.results
    ]
    return found, np.array(scores)


def _left_out(columns: Array, problem: Problem, weights: Array, intercept: float) -> float:
    n_rows = len(columns)
    A = np.hstack([np.ones((n_rows, 1)), columns])
    if A.shape[1] >= n_rows - 1:
        return float("inf")
    loss, y, ones = problem.loss, problem.y, np.ones(n_rows)
    z = intercept + columns @ weights
    slope, curvature = loss.gradient(y, z, ones), loss.curvature(y, z, ones)
    hessian = (A.T * curvature) @ A
    # Columns that are copies of each other leave it singular.
    hessian[np.diag_indices_from(hessian)] += 1e-10 * max(hessian.diagonal().max(), 1e-300)
    half = la.solve_triangular(la.cholesky(hessian, lower=True), A.T, lower=True)
    leverage = np.sum(half**2, axis=0)
    moved = z + leverage * slope / np.maximum(1.0 - leverage * curvature, 1e-6)
    return float(loss.mean_loss(y, moved, ones))
