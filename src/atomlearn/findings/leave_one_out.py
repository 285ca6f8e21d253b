"""The level of a path by what it predicts for rows that are left out, one at a time, by a formula.

Leaving out row i moves the fit on its columns S by one Newton step, to first order:

    z_i without i  =  z_i + H_ii f_i' / (1 - H_ii f_i''),    H = A (A' diag(f'') A)^-1 A',

with A the columns of S beside a column of ones; exact for least squares while no column enters or
leaves. One path then does what five folds need five of.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.linalg as la

from atomlearn.core.data.convert import as_design
from atomlearn.core.interfaces import Array, Loss, Norm
from atomlearn.core.norms.groups import l1_weights
from atomlearn.core.paths.ends import End, Reached
from atomlearn.core.paths.levels import largest_useful_level, level_grid
from atomlearn.core.paths.path import path_of
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result
from atomlearn.findings.settings import SETTINGS


def has_formula(loss: Loss, norm: Norm, n_columns: int) -> bool:
    """Return whether the formula knows the loss (smooth, a sum over rows) and the norm (l1)."""
    smooth = loss.coupled == 1 and loss.smoothed(1.0) is None
    return smooth and l1_weights(norm, n_columns) is not None


def path_with_scores(
    X: Array, y: Array, loss: Loss, norm: Norm, n_levels: int, ratio: float
) -> tuple[Array, list[Result], Array]:
    """Return levels, their solutions with an intercept, and the mean loss of left-out rows at each.

    ``ratio`` : last level over the first. The path ends where its best level is well behind,
    and goes on once by as many levels where the last one is the best. A loss is infinite where as
    many columns as rows are in use.

    References
    ----------
    K. Rahnama Rad, A. Maleki. A scalable estimate of the out-of-sample prediction error via
    approximate leave-one-out cross-validation. JRSS B 82 (2020) 965-996.
    """
    problem = Problem.build(
        as_design(X), y, loss, Regularizer(norm, "penalized", 1.0), fit_intercept=True
    )
    grid = level_grid(largest_useful_level(problem), n_levels, ratio)
    passed, results, levels = _Passed(X), [], np.empty(0)
    for _ in range(2):
        found = path_of(problem, grid, Settings(), until=passed)
        results += found.results
        levels = np.append(levels, found.levels)
        if np.argmin(passed.scores) < len(results) - 1:
            break
        grid = grid * ratio ** (n_levels / max(n_levels - 1, 1))
    return levels, results, np.array(passed.scores)


@dataclass(frozen=True, slots=True)
class _Passed(End):
    """Where the mean loss of left-out rows has risen well above its least; it keeps the scores."""

    X: Array
    scores: list[float] = field(default_factory=list)

    def begin(self) -> Reached:
        def reached(problem: Problem, result: Result) -> bool:
            self.scores.append(_left_out(self.X, problem, result))
            return self.scores[-1] > SETTINGS.risen * min(self.scores)

        return reached


def _left_out(X: Array, problem: Problem, result: Result) -> float:
    (n_rows, _), columns = X.shape, result.columns
    if columns.size >= n_rows - 2:
        return float("inf")
    A = np.ones((columns.size + 1, n_rows))
    A[1:] = X.T[columns]
    z = result.intercept + result.weights @ A[1:]
    loss, y, ones = problem.loss, problem.y, np.ones(n_rows)
    slope, curvature = loss.gradient(y, z, ones), loss.curvature(y, z, ones)
    # The lower half alone.
    hessian = la.blas.dsyrk(1.0, (A * np.sqrt(curvature)).T, trans=1, lower=1)
    # Columns that are copies of each other leave it singular.
    hessian[np.diag_indices_from(hessian)] += 1e-10 * max(hessian.diagonal().max(), 1e-300)
    factor = la.cholesky(hessian, lower=True, overwrite_a=True)
    half = la.blas.dtrsm(1.0, factor, A.T, side=1, lower=1, trans_a=1, overwrite_b=1)
    leverage = np.einsum("ij,ij->i", half, half)
    left_out = z + leverage * slope / np.maximum(1.0 - leverage * curvature, 1e-6)
    return float(loss.mean_loss(y, left_out, ones))
