"""Unpenalized columns that tell the targets apart: their best coefficients are infinite."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from atomlearn.core.interfaces import Array, Design, Loss
from atomlearn.core.losses import FreeIntercepts
from atomlearn.core.problem.result import Result
from atomlearn.estimators.checks import free_columns, names_of
from atomlearn.maps.feature_map import map_of


def separating(loss: Loss, y: Array, weight: Array, Z: Array, X: Array, own: Array) -> list[int]:
    """Return the free columns twice whose part does not raise the loss.

    Z : (n_samples, m) predictions; X : (n_samples, r) free columns; own : (r, m) their
    coefficients.

    The loss is convex along such a line. At a best coefficient that is finite it has its least
    value, and rises beyond, a parabola by as much as it falls on the way. It falls without end
    where values of a column leave no doubt about a target: it rises by less than a millionth of the
    fall then, what rounding and tolerances leave. Columns that do so alone are returned, else those
    that do so together. Effects below 1 on the scale of the link are not asked about, nor those
    beside one ten times as large: where that has taken the loss to 0, all leave it there.
    """
    spread = np.ptp(X[weight[:: Z.shape[1]] > 0.0], axis=0)
    effects = np.abs(own).max(axis=1) * spread
    large = np.flatnonzero(effects > max(1.0, 0.1 * effects.max(initial=0.0))).tolist()

    def falls(columns: list[int]) -> bool:
        part = X[:, columns] @ own[columns]
        before, there, beyond = (
            loss.value(y, (Z + times * part).ravel(), weight) for times in (-1.0, 0.0, 1.0)
        )
        return beyond - there <= 1e-6 * (before - there)

    alone = [j for j in large if falls([j])]
    return alone or (large if len(large) > 1 and falls(large) else [])


def warn_of_separating(
    estimator: Any, design: Design, loss: Loss, weight: Array, fits: list[tuple[Array, Result, Any]]
) -> None:
    """Name the unpenalized columns whose values alone tell the targets apart.

    ``fits`` : targets of the loss, result and offset of each.
    """
    # Margins of 1 are enough for losses of labels without probabilities, and residuals have signs.
    enough = loss.task == "classification" and not loss.has_probabilities
    free = None if loss.translates or enough else free_columns(estimator, design)
    if free is None:
        return
    X, found = np.asarray(design.gather(free).dense(), dtype=np.float64), set()
    for y, result, offset in fits:
        Z = result.predict(design).reshape(design.shape[0], -1)
        Z, m = (Z if offset is None else Z + offset), Z.shape[1]
        around = FreeIntercepts(loss, m) if estimator.fit_intercept else loss
        own = np.asarray(result.coef).reshape(-1, m)[free]
        found.update(separating(around, y.ravel(), np.repeat(weight, m), Z, X, own))
    if found:
        names = ", ".join(names_of(estimator, map_of(design), free[sorted(found)]))
        said = f"{type(estimator).__name__}: {names} tells the targets apart by itself and has no "
        said += "finite best coefficient without a penalty: leave it out of unpenalized=, or of X"
        warnings.warn(said, ConvergenceWarning, stacklevel=6)
