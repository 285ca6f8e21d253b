"""Marginal tests: the effect of each column by itself, adjusted for the covariates."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr
from scipy.stats import norm, t

from atomlearn.core import Array

#: Maximum number of Newton steps of a logistic regression; more mean that the classes are
#: separable.
MOST_STEPS = 30


def marginal_tests(
    X: Array, covariates: Array, y: Array, is_binary: bool
) -> list[tuple[float, float, float]]:
    """Return the coefficient, its standard error and the p-value of each column.

    Each column is regressed by itself, with an intercept and the covariates: linearly, with a t
    test, or by logistic regression, with a Wald test. The numbers are NaN for a column that the
    covariates determine, or that separates the classes.

    Parameters
    ----------
    X : (n_samples, n_columns) array
        The columns.
    covariates : (n_samples, n_covariates) array
        The covariates.
    y : (n_samples,) array
        The target: numbers, or 0 and 1.
    is_binary : bool
        Whether y is 0 or 1, for logistic regression.
    """
    fixed = np.column_stack([np.ones(y.size), covariates])
    # Covariates may be collinear, as the indicators of all levels of a category are.
    basis, upper, _ = qr(fixed, mode="economic", pivoting=True)
    fixed = basis[:, np.abs(np.diag(upper)) > 1e-10 * np.abs(upper[0, 0])]
    fit = _logistic if is_binary else _linear
    return [fit(np.column_stack([fixed, column]), y) for column in X.T]


_UNKNOWN = (float("nan"),) * 3


def _linear(regressors: Array, y: Array) -> tuple[float, float, float]:
    """Return the last coefficient, its standard error and p-value of a linear regression.

    regressors : (n, k), an intercept included. y : (n,) numbers. All are NaN if the last column
    depends on the others, or if there is no degree of freedom left.
    """
    # With X = Q R, the last coefficient is the last entry of Q'y divided by the last one of R.
    basis, upper = np.linalg.qr(regressors)
    degrees = y.size - regressors.shape[1]
    if degrees < 1 or _is_singular(upper):
        return _UNKNOWN
    coordinates = basis.T @ y
    residual = y - basis @ coordinates
    value = float(coordinates[-1] / upper[-1, -1])
    error = float(np.sqrt(residual @ residual / degrees) / abs(upper[-1, -1]))
    return value, error, float(2.0 * t.sf(abs(value) / error, degrees)) if error else 0.0


def _logistic(regressors: Array, y: Array) -> tuple[float, float, float]:
    """Return the last coefficient, its standard error and p-value of a logistic regression.

    regressors : (n, k), an intercept included. y : (n,) zeros and ones. All are NaN if the last
    column depends on the others, or if the classes are separable. The fit is by Newton's method.
    """
    scale = np.abs(regressors).max(axis=0)
    if not scale.all() or _is_singular(np.linalg.qr(regressors / scale)[1]):
        return _UNKNOWN
    Z = regressors / scale
    weights = np.zeros(Z.shape[1])
    for _ in range(MOST_STEPS):
        shares = 1.0 / (1.0 + np.exp(-np.clip(Z @ weights, -30.0, 30.0)))
        hessian = (Z.T * (shares * (1.0 - shares))) @ Z
        gradient = Z.T @ (y - shares)
        try:
            step = np.linalg.solve(hessian, gradient)
            inverse = np.linalg.inv(hessian)
        except np.linalg.LinAlgError:
            return _UNKNOWN
        if gradient @ step < 1e-12 * y.size:
            value = float(weights[-1] / scale[-1])
            error = float(np.sqrt(inverse[-1, -1]) / scale[-1])
            # For separable classes the slope diverges, and its standard error even faster.
            is_determined = 0.0 < inverse[-1, -1] < 1e4
            return (
                (value, error, float(2.0 * norm.sf(abs(value) / error)))
                if is_determined
                else _UNKNOWN
            )
        weights += step
    return _UNKNOWN


def _is_singular(upper: Array) -> bool:
    """Return whether the last column depends linearly on the others.

    upper : the triangular factor R of the QR decomposition of the columns.
    """
    diagonal = np.abs(np.diag(upper))
    return bool(diagonal[-1] <= 1e-9 * np.linalg.norm(upper[:, -1]))
