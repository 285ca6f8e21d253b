"""One-step (Newton) estimators of coefficients, with model-based and robust covariances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
from sklearn.base import clone, is_classifier

from atomlearn._support import EPS, TINY
from atomlearn.core import (
    Array,
    Columns,
    Design,
    Loss,
    column_moments,
    dense_part,
    is_quadratic,
    part_of,
)
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import unpenalized_columns
from atomlearn.estimators.classifier import AtomicClassifier
from atomlearn.estimators.dependent_rows import unit_numbers
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.estimators.survival import AtomicSurvival
from atomlearn.findings.precision import members_of

#: Maximum number of Newton steps of a refit to selected columns.
MOST_STEPS = 50


def of_single_rows(loss: Loss) -> bool:
    """Return whether the loss is smooth and a sum over rows, each with one linear predictor."""
    return loss.coupled == 1 and loss.smoothed(1.0) is None


@dataclass(frozen=True, slots=True)
class FitData:
    """The checked data of a fit: X as ``design`` (n, p), encoded target y (n,), weights of mean 1.

    Attributes
    ----------
    free : Columns
        Indices of unpenalized columns (covariates).
    row_groups : (n,) int64, optional
        Group labels of the rows, None if rows are independent.
    model : AtomicModel
        An unfitted estimator with the settings of the fit.
    """

    design: Design
    y: Array
    weight: Array
    loss: Loss
    free: Columns
    row_groups: Columns | None
    model: AtomicModel

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, weight: Any, groups: Any) -> FitData:
        """Return the checked data of a fitted linear model; raise ValueError for other models.

        weight : sample weights (n,) or None. groups : labels of rows that belong together, or None.
        An estimator of another package, if it has ``coef_``, is treated as the estimator of ours
        for the same kind of target.
        """
        # An unfitted estimator of ours checks the data and names the loss.
        model: AtomicModel = AtomicClassifier() if is_classifier(estimator) else AtomicRegressor()
        if isinstance(estimator, AtomicModel):
            model = clone(estimator)
        elif np.asarray(y).dtype.names is not None:
            model = AtomicSurvival()
        checked = model._checked(X, y, weight)
        n_rows, n_columns = checked.design.shape
        coef_shape = np.shape(getattr(estimator, "coef_", ()))
        loss = checked.loss
        if (
            len(checked.targets) != 1
            or int(np.prod(coef_shape, dtype=np.int64)) != n_columns
            or not (of_single_rows(loss) or loss.task == "survival")
            or not checked.design.listable
        ):
            raise ValueError(
                f"estimates are of a fitted linear model with one output and a smooth loss: got "
                f"loss {loss.name!r}, {len(checked.targets)} outputs, coef_ of shape {coef_shape} "
                f"for {n_columns} columns; fit a regression, survival times or two classes to "
                "explicit columns"
            )
        free = unpenalized_columns(model, checked.design)
        free = np.zeros(0, dtype=np.int64) if free is None else free
        # Unpenalized columns, group numbers, and weights of mean 1.
        row_groups = None if groups is None else unit_numbers(n_rows, groups)
        weights = checked.weight * n_rows / checked.weight.sum()
        return cls(checked.design, checked.targets[0], weights, loss, free, row_groups, model)

    def rows(self, rows: Columns) -> FitData:
        """Return the data restricted to these rows."""
        row_groups = None if self.row_groups is None else self.row_groups[rows]
        design = part_of(self.design, rows=rows)
        y = self.y[rows]
        weight = self.weight[rows]
        return replace(self, design=design, y=y, weight=weight, row_groups=row_groups)

    def lengths(self, weight: Array) -> Array:
        """Return sqrt(sum_i w_i (x_ij - mean_j)^2) of each column (p,), 1 if that is zero.

        weight : (n,) the row weights w, also those of the means.
        """
        deviations = column_moments(self.design, weight)[1]
        return np.asarray(np.sqrt(weight.sum()) * np.where(deviations > 0, deviations, 1.0))

    def columns_of(self, columns: Columns) -> Array:
        """Return these columns of X as an array (n, k)."""
        return dense_part(self.design, columns)

    def hessian_times(self, prediction: Array, V: Array) -> Array:
        """Return H V (n, k), with H the Hessian of the loss in the predictions and V (n, k).

        The loss gives H as diag(c) - K K', where K couples rows that share a risk set.
        ``prediction`` is the linear predictor (n,) at which H is taken.
        """
        c, K = self.loss.coupling(self.y, prediction, self.weight)
        return np.asarray(c[:, None] * V - K @ (K.T @ V))

    def projected(self, V: Array) -> Array:
        """Return the residuals of W^1/2 V on the weighted intercept and free columns.

        V : (n, k). W : the diagonal matrix of the row weights.
        """
        root = np.sqrt(self.weight)[:, None]
        ones = np.ones(self.y.size)
        basis = la.orth(root * np.column_stack([ones, self.columns_of(self.free)]))
        return np.asarray(root * V - basis @ (basis.T @ (root * V)))


@dataclass(frozen=True, slots=True)
class Step:
    """A one-step estimator b + A^-1 Z'r with A = Z'W X, and its sandwich covariance A^-1 M A^-T.

    b (k,) are initial coefficients of the columns X (n, k), and Z (n, k) are instruments. W are the
    curvatures of the loss at a prediction and r its negative gradients, (n,) each. M (k, k)
    estimates the covariance of Z'r.

    Attributes
    ----------
    values : (k,) float64
        The estimates.
    degrees : float
        Residual degrees of freedom, at most the number of groups less one.
    dispersion : float
        Dispersion, the variance of r_i / sqrt(W_i).
    weighted_X : (n, k) float64
        W X.
    information : (k, k) float64
        A.
    covariance : (k, k) float64
        Model-based covariance of the values, for a constant dispersion.
    robust : (k, k) float64
        The jackknife covariance over rows (HC3) or groups of rows, valid under heteroskedasticity.

    References
    ----------
    J. MacKinnon, H. White. Some heteroskedasticity-consistent covariance matrix estimators with
    improved finite sample properties. Journal of Econometrics 29 (1985) 305-325. R. Bell, D.
    McCaffrey. Bias reduction in standard errors for linear regression with multi-stage samples.
    Survey Methodology 28 (2002) 169-181.
    """

    values: Array
    degrees: float
    dispersion: float
    weighted_X: Array
    information: Array
    covariance: Array
    robust: Array

    @classmethod
    def of(
        cls,
        data: FitData,
        prediction: Array,
        Z: Array,
        X: Array,
        b: Array,
        n_used: int,
        left_out: Array | None = None,
    ) -> Step:
        """Return the one-step estimator of the coefficients of X (n, k) with instruments Z (n, k).

        prediction : (n,) linear predictor of an initial fit with ``n_used`` coefficients. b : (k,)
        its coefficients of X. left_out : (n,) cross-validated predictions, each row predicted
        without its group, from which the robust covariance is then computed. ``data`` is the data
        of the fit.
        """
        if data.loss.task == "survival":
            return cls._of_hazards(data, prediction, Z, X, b)
        # W: curvatures of the loss at the prediction; r: its negative gradients, (n,) both.
        W = data.loss.curvature(data.y, prediction, data.weight)
        r = -data.loss.gradient(data.y, prediction, data.weight)
        n_weighted = int(np.count_nonzero(data.weight))
        degrees = max(n_weighted - n_used, 1)
        positive = W > 0
        # The dispersion is estimated from residuals if the loss has one, else it is 1.
        dispersion = (
            float(np.sum(r[positive] ** 2 / W[positive])) / degrees if data.loss.dispersed else 1.0
        )
        # The Newton step, with the model-based covariance.
        weighted_X = W[:, None] * X
        A = Z.T @ weighted_X
        inverse = np.asarray(la.pinv(A), dtype=np.float64)
        values = b + inverse @ Z.T @ r
        model = dispersion * inverse @ (Z.T @ (W[:, None] * Z)) @ inverse.T
        # The leverages below are of the k columns only; this factor accounts for all other
        # coefficients.
        small_sample_factor = n_weighted / max(n_weighted - max(n_used - b.size, 0), 1)
        inverse_for_leverage = inverse
        # Cross-validated residuals are not shrunk by overfitting, so they need no leverage.
        if left_out is not None:
            r = -data.loss.gradient(data.y, left_out, data.weight)
            small_sample_factor = 1.0
            inverse_for_leverage = 0.0 * inverse
        # The sandwich covariance from the changes of b when single rows or groups are left out.
        scores = _jackknife_changes(data.row_groups, Z, weighted_X, inverse_for_leverage, r)
        robust = small_sample_factor * inverse @ (scores.T @ scores) @ inverse.T
        if data.row_groups is not None:
            degrees = min(degrees, max(len(scores) - 1, 1))
        return cls(values, degrees, dispersion, weighted_X, A, model, robust)

    @classmethod
    def _of_hazards(cls, data: FitData, prediction: Array, Z: Array, X: Array, b: Array) -> Step:
        """Return the step for the partial likelihood, with the standard errors of Lin and Wei.

        data, prediction, Z, X, b : as for ``of``. Rows share risk sets, so that no single row can
        be left out: the robust covariance is a plain sandwich. Intervals are normal without groups
        of rows.
        """
        loss: Any = data.loss
        # The part (n, k) of each row in Z'r; the parts of a group of rows are added.
        scores = loss.score_residuals(data.y, prediction, data.weight, Z)
        weighted_X = data.hessian_times(prediction, X)
        A = Z.T @ weighted_X
        inverse = np.asarray(la.pinv(A), dtype=np.float64)
        values = b + inverse @ scores.sum(axis=0)
        model = inverse @ (Z.T @ data.hessian_times(prediction, Z)) @ inverse.T
        degrees = np.inf
        if data.row_groups is not None:
            groups = members_of(np.unique(data.row_groups, return_inverse=True)[1])
            scores = np.array([scores[rows].sum(axis=0) for rows in groups])
            degrees = max(len(scores) - 1, 1)
        robust = inverse @ (scores.T @ scores) @ inverse.T
        return cls(values, degrees, 1.0, weighted_X, A, model, robust)


def _jackknife_changes(
    row_groups: Columns | None, Z: Array, weighted_X: Array, inverse: Array, r: Array
) -> Array:
    """Return (m, k): A times the jackknife change of b when each of m rows or groups is left out.

    row_groups : (n,) group labels, None for single rows. Z : (n, k) instruments. weighted_X :
    (n, k) W X. inverse : (k, k) the inverse of A = Z'W X. r : (n,) negative gradients. A single row
    i changes A b by z_i r_i / (1 - h_i), with the leverage h_i = W_i x_i'A^-1 z_i. A group g
    changes A b by (I - Z_g'W_g X_g A^-1)^-1 Z_g'r_g.
    """
    if row_groups is None:
        # A row of leverage 1 is fitted exactly, so it says nothing about the errors.
        one_less_leverage = 1.0 - np.einsum("ij,jk,ik->i", weighted_X, inverse, Z)
        adjusted = np.divide(
            r, one_less_leverage, out=np.zeros_like(r), where=one_less_leverage > EPS
        )
        return np.asarray(Z * adjusted[:, None])
    identity = np.eye(Z.shape[1])
    changes = []
    for rows in members_of(np.unique(row_groups, return_inverse=True)[1]):
        one_less_leverage = identity - Z[rows].T @ weighted_X[rows] @ inverse
        changes.append(la.lstsq(one_less_leverage, Z[rows].T @ r[rows])[0])
    return np.array(changes)


def unpenalized_fit(data: FitData, columns: Columns) -> Step:
    """Return the unpenalized fit of these columns by Firth's penalized likelihood, as a ``Step``.

    data : the data of the fit. columns : indices of k columns of X. The result has k + 1
    coefficients, the intercept first. The likelihood is multiplied by the square root of the
    determinant of the information matrix (Jeffreys' prior; no change for the squared loss). That
    reduces small-sample bias and keeps estimates finite under separation. The partial likelihood of
    survival times is not changed, and its intercept is zero.
    """
    if data.loss.task == "survival":
        return _hazard_fit(data, columns)
    Z = np.column_stack([np.ones(data.y.size), data.columns_of(columns)])
    b = np.zeros(Z.shape[1])
    half_step = 1e-4
    # Root mean squares of the columns.
    scale = np.sqrt(np.mean(Z**2, axis=0))
    for _ in range(MOST_STEPS):
        # z: linear predictors; W: curvatures of the loss; r: negative gradients, corrected below.
        z = Z @ b
        W = data.loss.curvature(data.y, z, data.weight)
        inverse = la.pinvh(Z.T @ (W[:, None] * Z))
        # Firth's correction of the score: leverage / 2 times the derivative of W, by central
        # differences.
        upper, lower = (
            data.loss.curvature(data.y, z + h, data.weight) for h in (half_step, -half_step)
        )
        leverage = np.einsum("ij,jk,ik->i", Z, inverse, Z)
        r = -data.loss.gradient(data.y, z, data.weight) + leverage * (upper - lower) / (
            4 * half_step
        )
        change = inverse @ (Z.T @ r)
        size = np.max(np.abs(change) * scale)
        if is_quadratic(data.loss):
            b = change
            break
        # Against overshooting: no coefficient changes by more than 2 / (root mean square of its
        # column).
        b = b + change * min(1.0, 2.0 / max(size, 1e-300))
        if size < 1e-8:
            break
    return replace(Step.of(data, Z @ b, Z, Z, b, b.size), values=b)


def _hazard_fit(data: FitData, columns: Columns) -> Step:
    """Return the maximum of the partial likelihood of these columns, as a ``Step``.

    It is found by Newton's method with step halving. The first coefficient is an intercept of 0.
    Raises ValueError if there is no maximum, because a combination of columns orders all events.
    ``data`` is the data of the fit.
    """
    loss = data.loss
    selected = data.columns_of(columns)
    # A column of zeros replaces that of the intercept; the others are centered and scaled.
    selected = np.column_stack([np.zeros(data.y.size), selected - selected.mean(axis=0)])
    scale = np.maximum(selected.std(axis=0), TINY)
    X = selected / scale
    b = np.zeros(scale.size)
    # The ridge makes the matrices positive definite; the column of zeros has no information.
    ridge = EPS * data.y.size * np.eye(b.size)
    information_at_zero = X.T @ data.hessian_times(X @ b, X) + ridge
    for _ in range(MOST_STEPS):
        z = X @ b
        information = X.T @ data.hessian_times(z, X)
        if la.eigvalsh(information + ridge, information_at_zero)[0] < EPS**0.5:
            break  # in some direction, the likelihood is flat: it rises to a limit at infinity
        change = -la.pinvh(information) @ (X.T @ loss.gradient(data.y, z, data.weight))
        step = 1.0
        largest_value = loss.value(data.y, z, data.weight) * (1.0 + EPS) + EPS
        while loss.value(data.y, X @ (b + step * change), data.weight) > largest_value:
            step /= 2
        b = b + step * change
        if np.max(np.abs(change)) < 1e-9:  # converged: back to the units of the columns
            b /= scale
            return replace(Step.of(data, selected @ b, selected, selected, b, b.size), values=b)
    target: Any = data.y
    worst = int(np.argmax(np.abs(b))) - 1
    raise ValueError(
        f"the hazard ratio of column {int(columns[worst])} has no bound: in these "
        f"{int(target['event'].sum())} events it orders all of them, alone or with other columns; "
        "leave it out, or join its rare values"
    )
