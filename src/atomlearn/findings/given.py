"""One-step (Newton) estimators of coefficients, with model-based and robust covariances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
from sklearn.base import clone, is_classifier

from atomlearn.core import (
    EPS,
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
from atomlearn.findings.precision import members_of

#: Newton steps of a refit to selected columns.
MOST_STEPS = 50


def of_single_rows(loss: Loss) -> bool:
    """Return whether the loss is smooth and a sum over rows, each with one linear predictor."""
    return loss.coupled == 1 and loss.smoothed(1.0) is None


@dataclass(frozen=True, slots=True)
class Given:
    """The data of a fit: X as ``design`` (n, p), the encoded target y (n,), weights of mean 1.

    free : indices of unpenalized columns (covariates); units : (n,) group labels of the rows, None
    if rows are independent; model : an unfitted estimator with the settings of the fit.
    """

    design: Design
    y: Array
    weight: Array
    loss: Loss
    free: Columns
    units: Columns | None
    model: AtomicModel

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, weight: Any, groups: Any) -> Given:
        model: AtomicModel = AtomicClassifier() if is_classifier(estimator) else AtomicRegressor()
        if isinstance(estimator, AtomicModel):
            model = clone(estimator)
        checked = model._checked(X, y, weight)
        n_rows, n_columns = checked.design.shape
        known = np.shape(getattr(estimator, "coef_", ()))
        loss = checked.loss
        if (
            len(checked.targets) != 1
            or int(np.prod(known, dtype=np.int64)) != n_columns
            or not of_single_rows(loss)
            or not checked.design.listable
        ):
            raise ValueError(
                f"estimates are of a fitted linear model with one output and a smooth loss: got "
                f"loss {loss.name!r}, {len(checked.targets)} outputs, coef_ of shape {known} for "
                f"{n_columns} columns; fit a regression or two classes to explicit columns"
            )
        free = unpenalized_columns(model, checked.design)
        free = np.zeros(0, dtype=np.int64) if free is None else free
        units = None if groups is None else unit_numbers(n_rows, groups)
        weights = checked.weight * n_rows / checked.weight.sum()
        return cls(checked.design, checked.targets[0], weights, loss, free, units, model)

    def rows(self, rows: Columns) -> Given:
        """Return the data restricted to these rows."""
        units = None if self.units is None else self.units[rows]
        design = part_of(self.design, rows=rows)
        y = self.y[rows]
        weight = self.weight[rows]
        return replace(self, design=design, y=y, weight=weight, units=units)

    def lengths(self, weight: Array) -> Array:
        """Return sqrt(sum_i w_i (x_ij - mean_j)^2) of each column, 1 if that is zero."""
        deviations = column_moments(self.design, weight)[1]
        return np.asarray(np.sqrt(weight.sum()) * np.where(deviations > 0, deviations, 1.0))

    def columns_of(self, columns: Columns) -> Array:
        return dense_part(self.design, columns)

    def projected(self, V: Array) -> Array:
        """Return the residuals of W^1/2 V on the weighted intercept and free columns.

        V : (n, k); W : the diagonal matrix of the row weights.
        """
        root = np.sqrt(self.weight)[:, None]
        ones = np.ones(self.y.size)
        basis = la.orth(root * np.column_stack([ones, self.columns_of(self.free)]))
        return np.asarray(root * V - basis @ (basis.T @ (root * V)))


@dataclass(frozen=True, slots=True)
class Step:
    """A one-step estimator b + A^-1 Z'r with A = Z'W X, and its sandwich covariance A^-1 M A^-T.

    W are the curvatures of the loss at a prediction and r its negative gradients, (n,) each; X
    (n, k) are the columns to estimate and Z (n, k) the instruments. values : (k,) the estimates;
    left : residual degrees of freedom, at most the number of groups less one; spread : dispersion,
    the variance of r_i / sqrt(W_i); weighed : W X; information : A; covariance : model-based, for a
    constant dispersion; robust : the jackknife covariance over rows (HC3) or groups of rows, valid
    under heteroskedasticity.

    References
    ----------
    J. MacKinnon, H. White. Some heteroskedasticity-consistent covariance matrix estimators with
    improved finite sample properties. Journal of Econometrics 29 (1985) 305-325. R. Bell, D.
    McCaffrey. Bias reduction in standard errors for linear regression with multi-stage samples.
    Survey Methodology 28 (2002) 169-181.
    """

    values: Array
    left: int
    spread: float
    weighed: Array
    information: Array
    covariance: Array
    robust: Array

    @classmethod
    def of(
        cls,
        data: Given,
        prediction: Array,
        Z: Array,
        X: Array,
        b: Array,
        used: int,
        left_out: Array | None = None,
    ) -> Step:
        """Return the one-step estimator of the coefficients of X with instruments Z.

        prediction : (n,) linear predictor of an initial fit with ``used`` coefficients; b : (k,)
        its coefficients of X; left_out : (n,) cross-validated predictions, each row predicted
        without its group, from which the robust covariance is then computed.
        """
        W = data.loss.curvature(data.y, prediction, data.weight)
        r = -data.loss.gradient(data.y, prediction, data.weight)
        rows = int(np.count_nonzero(data.weight))
        left = max(rows - used, 1)
        positive = W > 0
        # Losses with a dispersion parameter, such as squares, have it estimated from residuals.
        spread = (
            float(np.sum(r[positive] ** 2 / W[positive])) / left if data.loss.dispersed else 1.0
        )
        weighed = W[:, None] * X
        A = Z.T @ weighed
        inverse = np.asarray(la.pinv(A), dtype=np.float64)
        values = b + inverse @ Z.T @ r
        model = spread * inverse @ (Z.T @ (W[:, None] * Z)) @ inverse.T
        # Coefficients of the predictions that are none of b have no part in the leverage.
        factor = rows / max(rows - max(used - b.size, 0), 1)
        leverage = inverse
        if left_out is not None:  # the part of each row that the fit explains
            r = -data.loss.gradient(data.y, left_out, data.weight)
            factor = 1.0
            leverage = 0.0 * inverse
        scores = _without_each(data.units, Z, weighed, leverage, r)
        robust = factor * inverse @ (scores.T @ scores) @ inverse.T
        if data.units is not None:
            left = min(left, max(len(scores) - 1, 1))
        return cls(values, left, spread, weighed, A, model, robust)


def _without_each(
    units: Columns | None, Z: Array, weighed: Array, inverse: Array, r: Array
) -> Array:
    """Return (m, k): A times the jackknife change of b when each row, or group, is left out."""
    if units is None:  # the residual over one less the leverage
        rest = 1.0 - np.einsum("ij,jk,ik->i", weighed, inverse, Z)
        left = np.divide(r, rest, out=np.zeros_like(r), where=rest > EPS)
        return np.asarray(Z * left[:, None])
    size = np.eye(Z.shape[1])
    found = []
    for part in members_of(np.unique(units, return_inverse=True)[1]):
        rest = size - Z[part].T @ weighed[part] @ inverse
        found.append(la.lstsq(rest, Z[part].T @ r[part])[0])
    return np.array(found)


def unpenalized_fit(data: Given, columns: Columns) -> Step:
    """Return the unpenalized fit of these columns by Firth's penalized likelihood, as a ``Step``.

    The first coefficient is the intercept. The likelihood is multiplied by the square root of the
    determinant of the information matrix (Jeffreys' prior; no change for the squared loss), which
    reduces small-sample bias and keeps estimates finite under separation.
    """
    Z = np.column_stack([np.ones(data.y.size), data.columns_of(columns)])
    b = np.zeros(Z.shape[1])
    tiny = 1e-4
    scale = np.sqrt(np.mean(Z**2, axis=0))
    for _ in range(MOST_STEPS):
        z = Z @ b
        W = data.loss.curvature(data.y, z, data.weight)
        inverse = la.pinvh(Z.T @ (W[:, None] * Z))
        up, down = (data.loss.curvature(data.y, z + h, data.weight) for h in (tiny, -tiny))
        leverage = np.einsum("ij,jk,ik->i", Z, inverse, Z)
        r = -data.loss.gradient(data.y, z, data.weight) + leverage * (up - down) / (4 * tiny)
        change = inverse @ (Z.T @ r)
        size = float(np.max(np.abs(change) * scale))
        if is_quadratic(data.loss):
            b = change
            break
        b = b + change * min(1.0, 2.0 / max(size, 1e-300))
        if size < 1e-8:
            break
    return replace(Step.of(data, Z @ b, Z, Z, b, b.size), values=b)
