"""What coefficients are estimated from: one step of Newton, and its covariance two ways."""

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
    """Return whether this is a smooth loss that is a sum over rows, of one number each."""
    return loss.coupled == 1 and loss.smoothed(1.0) is None


@dataclass(frozen=True, slots=True)
class Given:
    """The data of a fit: X, the target as the loss takes it, weights of mean 1.

    free : covariates; units : number of the group of each row, None if rows are independent.
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
        """Return the same of these rows."""
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
        """Return W^1/2 v less the part that an intercept and free columns explain."""
        root = np.sqrt(self.weight)[:, None]
        ones = np.ones(self.y.size)
        basis = la.orth(root * np.column_stack([ones, self.columns_of(self.free)]))
        return np.asarray(root * V - basis @ (basis.T @ (root * V)))


@dataclass(frozen=True, slots=True)
class Step:
    """One step of Newton: values b + A^-1 Z'r and their covariance A^-1 M A^-T, A = Z'W X.

    left : rows less coefficients, at most the groups of rows less one; spread : variance of r_i
    over W_i; weighed : W X; information : A; covariance : if that variance is one number;
    robust : the squares of the change if a row, or group of rows, is left out (the
    jackknife; of rows HC3), which holds for any spread.

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
        """Return the step from predictions that took ``used`` coefficients, along Z for X.

        ``left_out`` : predictions of each group of rows by the others.
        """
        W = data.loss.curvature(data.y, prediction, data.weight)
        r = -data.loss.gradient(data.y, prediction, data.weight)
        rows = int(np.count_nonzero(data.weight))
        left = max(rows - used, 1)
        positive = W > 0
        # If the deviance has units, as squares have, residuals give them.
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
    """Return A times the change of b if a row, or group of rows, is left out, one in each row."""
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
    """Return the step at the fit of only these columns, with an intercept, which comes first.

    Not the likelihood is maximized but that times the root of the determinant of the information
    (Firth; nothing changes for squares): so effects are not too large where rows are few, and
    finite for classes that can be separated.
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
