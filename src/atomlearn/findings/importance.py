"""Absolute coefficients at the best alpha, for any target, as importance of features.

For l1 and smooth losses alpha is chosen along one path, by the predictions of each solution for
rows that are left out one at a time. To first order, leaving out row i moves the fit on its active
columns S by one Newton step:

    z_i without i  =  z_i + H_ii f_i' / (1 - H_ii f_i''),    H = A (A' diag(f'') A)^-1 A',

with A the columns of S and a column of ones. This is exact for least squares while no column enters
or leaves. So one path replaces the five paths of five folds. If a row has so high a leverage that
columns would leave with it (as with heavy tails), five folds are used instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from atomlearn._support import all_text, finite
from atomlearn.core import (
    Array,
    Columns,
    End,
    Fold,
    Loss,
    NoImprovement,
    Norm,
    Problem,
    Reached,
    Regularizer,
    Result,
    Settings,
    alpha_grid,
    as_design,
    as_loss,
    l1_weights,
    largest_useful_alpha,
    mean_loss,
    path_of,
)
from atomlearn.estimators.cross_validated import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.estimators.cross_validated_survival import AtomicSurvivalCV
from atomlearn.estimators.dependent_rows import folds
from atomlearn.estimators.targets import are_whole
from atomlearn.findings.one_step import of_single_rows
from atomlearn.survival.cox import Cox

#: The cross-validated estimator and the default loss of each task.
SEARCHES = {
    "classification": (AtomicClassifierCV, "logistic"),
    "regression": (AtomicRegressorCV, "squared"),
    "survival": (AtomicSurvivalCV, "cox"),
}
#: The last level of the search, as a share of the first.
RATIO = 0.05
#: The search over levels ends when the left-out loss exceeds its minimum by this ratio: smaller
#: increases may be followed by a new minimum.
RISEN = 1.05
#: The leave-one-out formula is not used if a leverage exceeds both this multiple of the mean
#: leverage and HIGH. For normal columns large leverages are at most twice the mean.
STANDS_OUT = 4.0
HIGH = 0.25


def loss_for(y: NDArray[Any], loss: str | Loss) -> Loss:
    """Return the loss, or the default for this kind of target if ``loss`` is "auto".

    y : the target. Text and few distinct whole numbers are classes, other numbers are quantities,
    and structured arrays are survival times.
    """
    if loss != "auto":
        return as_loss(loss)
    if y.dtype.names is not None:
        return as_loss(SEARCHES["survival"][1])
    # Integers with many distinct values are treated as a quantity rather than as labels.
    is_quantity = y.dtype.kind in "iuf" and not (
        are_whole(finite(y)) and np.unique(y).size <= max(20, y.size // 5)
    )
    # Arrays of objects are text or quantities.
    is_quantity = is_quantity or (y.dtype.kind == "O" and not all_text(y))
    return as_loss(SEARCHES["regression" if is_quantity else "classification"][1])


def coefficients(
    X: Array,
    y: NDArray[Any],
    norm: Norm,
    loss: str | Loss,
    n_alphas: int,
    cv: int | Literal["auto"],
    seed: int,
    groups: Any = None,
    order: Any = None,
    n_free: int = 0,
) -> tuple[Array, float]:
    """Return the absolute coefficients of a penalized fit, and the alpha chosen by validation.

    X, y : (n, p) dense columns and the target. norm : the norm of the penalty, over all columns.
    loss : a loss, its name or "auto". n_alphas : number of alphas to try. cv : number of folds;
    "auto" leaves out one row at a time if there is a formula and rows are independent, else a fifth
    of the rows. seed : the seed of the folds. groups, order : dependence of the rows, see
    ``dependent_rows``. n_free : the last ``n_free`` columns have no penalty and no coefficient in
    the result. Folds depend on rows only and alphas are shared by all columns, so that exchanging
    two columns exchanges their coefficients and nothing else.
    """
    inferred_loss = loss_for(y, loss)
    if (y == y[:1]).all():
        raise ValueError(f"y holds one value only, {y[:1].tolist()}, which no feature can tell")
    codes = None
    n_classes = 0
    smallest_class = len(y)
    if inferred_loss.task == "classification":
        classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        n_classes = classes.size
        smallest_class = int(counts.min())
    row_by_row = n_classes <= 2 and cv == "auto" and groups is None and order is None
    # The last columns are unpenalized, and only the others have a coefficient in the result.
    free = np.arange(X.shape[1])[X.shape[1] - n_free :]
    n_penalized = X.shape[1] - n_free
    if row_by_row and of_single_rows(inferred_loss) and l1_weights(norm, X.shape[1]) is not None:
        target: Any = y if codes is None else 2.0 * codes - 1.0
        path = path_with_scores(X, target, inferred_loss, norm, n_alphas, RATIO, free)
        best = int(np.argmin(path.scores))
        if not path.has_high_leverage:
            # Levels multiply the norm next to the sum of the losses, alpha next to their mean.
            magnitudes = np.abs(path.results[best].coef[:n_penalized])
            return magnitudes, float(path.levels[best]) / len(y)
    # Without a formula, or if it fails for a row, folds are left out instead of rows.
    n_folds = max(2, min(5 if cv == "auto" else cv, smallest_class))
    row_folds = folds(len(y), n_folds, seed, codes, groups, order)
    magnitudes, alpha = _cross_validated(X, y, norm, inferred_loss, n_alphas, row_folds, free)
    return magnitudes[:n_penalized], alpha


def _cross_validated(
    X: Array,
    y: NDArray[Any],
    norm: Norm,
    loss: Loss,
    n_alphas: int,
    folds: Sequence[Fold],
    free: Columns,
) -> tuple[Array, float]:
    """Return absolute coefficients (p,) at the alpha chosen by cross-validation, and that alpha.

    folds : (training rows, test rows) of each fold. free : the columns without a penalty. X, y,
    norm, loss and n_alphas are as for ``coefficients``.
    """
    # The grid has twice as many alphas, down to the square of RATIO, because the search ends early.
    # For the squared form the ratio is squared again: alpha multiplies the square of the norm.
    ratio = RATIO ** (4 if norm.usual_form == "squared" else 2)
    kind: Any = SEARCHES[loss.task][0]
    loss_options = {"ties": loss.ties} if isinstance(loss, Cox) else {"loss": loss}
    search = kind(
        norm,
        n_alphas=2 * n_alphas,
        alpha_ratio=ratio,
        cv=folds,
        form=norm.usual_form,
        until=NoImprovement(),
        unpenalized=free if free.size else None,
        **loss_options,
    )
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # A gap above the tolerance is still small compared with the difference between two columns.
        search.fit(X, y)
    # Several classes have a row of coefficients each; a column counts by their norm.
    magnitudes = np.linalg.norm(np.atleast_2d(search.coef_).astype(np.float64), axis=0)
    return magnitudes, float(search.alpha_)


@dataclass(frozen=True, slots=True)
class ScoredPath:
    """A path of solutions, scored by the approximate leave-one-out loss.

    Attributes
    ----------
    levels : list of float
        Weights of the norm next to the sum of the losses, decreasing.
    results : list of Result
        The solution at each level, with an intercept.
    scores : list of float
        The mean loss of left-out rows at each level.
    has_high_leverage : bool
        Whether a row has so high a leverage that the formula does not hold for it.
    """

    levels: list[float]
    results: list[Result]
    scores: list[float]
    has_high_leverage: bool


def path_with_scores(
    X: Array,
    y: Array,
    loss: Loss,
    norm: Norm,
    n_levels: int,
    ratio: float,
    free: Columns | None = None,
) -> ScoredPath:
    """Return an l1 path with the approximate leave-one-out loss of each solution.

    X, y : (n, p) dense columns and the target. n_levels : number of levels (weights of the norm, if
    the losses are summed). ratio : last level over the first. free : columns without a penalty.
    The path ends once the score is well above its minimum. It continues once, by the same number of
    levels, if the last level is the best. A score is infinite if as many columns as rows are used.

    References
    ----------
    K. Rahnama Rad, A. Maleki. A scalable estimate of the out-of-sample prediction error via
    approximate leave-one-out cross-validation. JRSS B 82 (2020) 965-996.
    """
    penalty = Regularizer(norm, "penalized", 1.0)
    free = None if free is None or not free.size else free
    problem = Problem.build(as_design(X), y, loss, penalty, fit_intercept=True, unpenalized=free)
    grid = alpha_grid(largest_useful_alpha(problem), n_levels, ratio)
    end = _LeaveOneOutEnd(X, loss)
    results = list[Result]()
    levels = list[float]()
    # If the last level is the best, a second path continues to smaller levels.
    for _ in range(2):
        solutions = path_of(problem, grid, Settings(), until=end)
        results += solutions.results
        levels += solutions.levels.tolist()
        if np.argmin(end.scores) < len(results) - 1:
            break
        # The next levels of the same geometric grid.
        grid = grid * ratio ** (n_levels / max(n_levels - 1, 1))
    return ScoredPath(levels, results, end.scores, any(end.high))


@dataclass(frozen=True, slots=True)
class _LeaveOneOutEnd(End):
    """Rule that ends a path when the mean leave-one-out loss is well above its minimum.

    X : (n, p) the columns. loss : the loss. For each solution, ``scores`` gets the mean
    leave-one-out loss, and ``high`` whether a leverage is too high for its formula.
    """

    X: Array
    loss: Loss
    scores: list[float] = field(default_factory=list)
    high: list[bool] = field(default_factory=list)

    def begin(self) -> Reached:
        """Return the rule that ends a path, and records the score of each solution."""

        def reached(problem: Problem, result: Result) -> bool:
            """Record the leave-one-out loss of a solution; return whether the path ends there.

            It ends if the loss is well above its minimum, or if a leverage is high. problem : of
            this alpha. result : its solution.
            """
            score, leverage = _leave_one_out(self.X, problem.y, self.loss, result)
            self.scores.append(score)
            self.high.append(bool(leverage.max() > max(STANDS_OUT * leverage.mean(), HIGH)))
            return self.high[-1] or score > RISEN * min(self.scores)

        return reached


def _leave_one_out(X: Array, y: Array, loss: Loss, result: Result) -> tuple[float, Array]:
    """Return the approximate leave-one-out loss (ALO), averaged over rows, and leverages (n,).

    X, y : the data. result : a solution. The prediction of row i without row i is
    z_i + H_ii f_i' / (1 - H_ii f_i''), see the module. The leverage of row i is H_ii f_i''.
    """
    n_rows, _ = X.shape
    columns = result.columns
    if columns.size >= n_rows - 2:
        return float("inf"), np.zeros(1)
    active_columns = np.ones((columns.size + 1, n_rows))
    active_columns[1:] = X.T[columns]
    predictions = result.intercept + result.weights @ active_columns[1:]
    ones = np.ones(n_rows)
    slope = loss.gradient(y, predictions, ones)
    curvature = loss.curvature(y, predictions, ones)
    # A' diag(f'') A, only its lower half.
    hessian = la.blas.dsyrk(1.0, (active_columns * np.sqrt(curvature)).T, trans=1, lower=1)
    # If columns are equal, this matrix is singular.
    hessian[np.diag_indices_from(hessian)] += 1e-10 * max(hessian.diagonal().max(), 1e-300)
    # With A' diag(f'') A = L L', H_ii is the squared norm of row i of A L^-T.
    factor = la.cholesky(hessian, lower=True, overwrite_a=True)
    half_solved = la.blas.dtrsm(
        1.0, factor, active_columns.T, side=1, lower=1, trans_a=1, overwrite_b=1
    )
    hat_diagonal = np.einsum("ij,ij->i", half_solved, half_solved)
    leverages = hat_diagonal * curvature
    left_out = predictions + hat_diagonal * slope / np.maximum(1.0 - leverages, 1e-6)
    return mean_loss(loss, y, left_out, ones), leverages
