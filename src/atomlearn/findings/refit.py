"""Estimates of what was selected: refitted, de-biased, and resampled. None is free of selection."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import norm as normal
from sklearn.base import is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from atomlearn.core.interfaces import Array, Columns
from atomlearn.estimators.regressor import AtomicRegressor
from atomlearn.findings.gaussian import generator, standardized
from atomlearn.findings.stability import selected_by


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of the selected coefficients, per unit of the data.

    columns : (m,) selected columns, or those asked for; penalized : as the model has them, pulled
    towards zero; refitted : without a penalty over these columns alone, which trusts the selection:
    too large where it was chance; bootstrap : (m, 2) interval of the refitted ones over rows drawn
    with repetition, the selection kept: too short, since it leaves out that others could have been
    selected; debiased : one step of Newton from the penalized fit in the direction that the other
    columns leave to each; debiased_interval : (m, 2), which holds (to first order) for each column
    that was chosen before looking at the data; level : of the intervals.
    """

    columns: Columns
    penalized: Array
    refitted: Array
    bootstrap: Array
    debiased: Array
    debiased_interval: Array
    level: float


def estimates(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    columns: ArrayLike | None = None,
    *,
    n_bootstrap: int = 200,
    level: float = 0.95,
    rng: Any = None,
) -> Estimates:
    """Return estimates of the selected coefficients of a fitted linear model of numbers or classes.

    Parameters
    ----------
    estimator : fitted; with ``coef_`` over the columns of X; regression or two classes
    X, y : (n_samples, n_features), (n_samples,)
        What it was fitted to.
    columns : numbers of columns, optional
        Named before the data was seen, so that intervals hold for them; default: the selected ones.
    n_bootstrap : int
        Refits to rows drawn with repetition.
    level : float
        Coverage of the intervals.

    References
    ----------
    C.-H. Zhang, S. Zhang. Confidence intervals for low dimensional parameters in high dimensional
    linear models. JRSS B 76 (2014) 217-242. S. van de Geer, P. Buhlmann, Y. Ritov, R. Dezeure. On
    asymptotically optimal confidence regions and tests. Annals of Statistics 42 (2014) 1166-1202.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicRegressor
    >>> from atomlearn.findings import estimates
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 30))
    >>> y = 2 * X[:, 3] + rng.standard_normal(200)
    >>> found = estimates(AtomicRegressor(alpha=0.3).fit(X, y), X, y, rng=0)
    >>> int(found.columns[0]), bool(found.penalized[0] < 1.9 < found.debiased[0])
    (3, True)
    """
    array = np.asarray(X, dtype=np.float64)
    classes = is_classifier(estimator)
    target = np.asarray(y)
    if classes:
        target = (target == estimator.classes_[1]).astype(np.float64)
    coef = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
    if coef.shape != (1, array.shape[1]):
        raise ValueError(
            f"coef_ has shape {np.shape(estimator.coef_)}, and X has {array.shape[1]} columns; "
            "estimates are of linear models with one output: a regression or two classes"
        )
    selected = np.flatnonzero(selected_by(estimator)[0])
    columns = selected if columns is None else np.asarray(columns, dtype=np.int64)
    penalized = coef[0, columns]
    few = array[:, columns]
    most = max(selected.size, columns.size)
    if most >= array.shape[0] - 1:
        raise ValueError(
            f"{most} features are selected from {array.shape[0]} rows, so that nothing is left to "
            "estimate an error from; select fewer (a larger alpha)"
        )
    refitted = _unpenalized(few, target, classes)
    draws = np.empty((n_bootstrap, columns.size))
    random = generator(rng)
    for draw in draws:
        rows = random.integers(0, len(target), len(target))
        draw[:] = _unpenalized(few[rows], target[rows], classes)
    sides = [(1 - level) / 2, (1 + level) / 2]
    bootstrap = np.full((columns.size, 2), np.nan)
    if n_bootstrap:
        bootstrap = np.quantile(draws, sides, axis=0).T
    linear = array @ coef[0] + float(np.ravel(estimator.intercept_)[0])
    debiased, errors = _debiased(array, target, linear, columns, coef[0], classes)
    width = float(normal.isf((1 - level) / 2)) * errors
    interval = np.column_stack([debiased - width, debiased + width])
    return Estimates(columns, penalized, refitted, bootstrap, debiased, interval, level)


def _unpenalized(X: Array, y: Array, classes: bool) -> Array:
    if not X.shape[1]:
        return np.zeros(0)
    if classes and np.unique(y).size < 2:
        return np.full(X.shape[1], np.nan)
    Z, _, scales = standardized(X)
    # A trace of ridge: classes that can be separated have no finite estimate.
    model = LogisticRegression(C=1e4, max_iter=200) if classes else LinearRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(Z, y).coef_.ravel() / scales)


def _debiased(
    X: Array, y: Array, linear: Array, columns: Columns, coef: Array, classes: bool
) -> tuple[Array, Array]:
    """Return b_j + z_j'(y - mu) / (z_j' W x_j) and its standard error.

    z_j is what a lasso of column j on all others leaves of it, W the curvature of the loss.
    """
    n_rows, n_columns = X.shape
    mean = expit(linear) if classes else linear
    weight = mean * (1 - mean) if classes else np.ones(n_rows)
    weight = np.maximum(weight, 1e-4)
    root = np.sqrt(weight)
    residual = y - mean
    noise = weight
    if not classes:
        freedom = max(n_rows - np.count_nonzero(coef) - 1, 1)
        noise = np.full(n_rows, float(residual @ residual) / freedom)
    scaled, _, scales = standardized(X * root[:, None])
    found, errors = np.empty(columns.size), np.empty(columns.size)
    level = np.sqrt(2 * np.log(max(n_columns, 2)) / n_rows) / 2
    for place, column in enumerate(columns.tolist()):
        others = scaled.copy()
        others[:, column] = 0.0
        model = AtomicRegressor(alpha=level, tol=1e-4, fit_intercept=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            left = scaled[:, column] - model.fit(others, scaled[:, column])._linear(others)[:, 0]
        direction = left * scales[column] / root
        direction = direction - np.average(direction, weights=weight)
        slope = float(direction @ (weight * X[:, column]))
        found[place] = coef[column] + float(direction @ residual) / slope
        errors[place] = np.sqrt(float(np.sum(noise * direction**2))) / abs(slope)
    return found, errors
