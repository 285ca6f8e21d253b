"""Checks of the parts of a problem, before any computation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn.core.interfaces import EPS, TINY, Array, Columns, Loss, is_number


def check_tau(tau: Any) -> None:
    """Raise unless ``tau``, the weight of the ridge term, is a finite number >= 0."""
    if not is_number(tau):
        raise TypeError(f"tau must be a number >= 0, got {type(tau).__name__}")
    if not (math.isfinite(tau) and tau >= 0):
        raise ValueError(f"tau must be finite and >= 0, got {tau}")


def check_intercept(fit_intercept: Any) -> None:
    """Raise TypeError unless ``fit_intercept`` is True or False."""
    if fit_intercept not in (0, 1):
        raise TypeError(f"the intercept is fitted or not: True or False, got {fit_intercept!r}")


def check_loss(loss: Loss, y: Array, weight: Array, fit_intercept: Any) -> None:
    """Raise ValueError if the loss cannot have an intercept, or if f(0) overflows or underflows.

    f(0) is the value of ``loss`` at the prediction 0 for targets ``y`` and sample weights
    ``weight``, (n_samples,) each. ``fit_intercept`` is whether an intercept is fitted.
    """
    check_intercept(fit_intercept)
    if fit_intercept and loss.task == "survival":
        raise ValueError(
            f"the loss {loss.name!r} has no intercept: the baseline hazard takes its place; "
            "leave it out"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        value = loss.value(y, np.zeros(y.shape[0]), weight)
    reason = f"for float64: the loss {loss.name!r} of predicting 0 is {value}"
    # Intermediate results are at most its square, so that this must not overflow.
    if not math.isfinite(value * value):
        raise ValueError(
            f"y is too large {reason}; divide y, or the sample weights, by their largest number"
        )
    # A loss of exactly 0 is wrong only for a function of y - z whose targets y are not all 0: then
    # it underflowed. Targets of weight 0 do not count. Below TINY / EPS, the terms of the sum lose
    # digits.
    may_be_zero = value == 0.0 and not (loss.translates and np.any(y[weight > 0.0]))
    if not may_be_zero and value < TINY / EPS:
        raise ValueError(
            f"y is too small {reason}; divide y, or the sample weights, by their largest number"
        )


def check_free(columns: object, n_features: int) -> Columns:
    """Return unpenalized columns as increasing int64 indices; raise if they are invalid.

    ``columns`` are indices, negative ones from the end, or a mask of ``n_features`` booleans.
    """
    array = np.asarray(columns)
    if array.dtype == np.bool_:
        if array.shape != (n_features,):
            raise ValueError(
                f"unpenalized: a mask must have shape ({n_features},), one entry a column; got "
                f"{array.shape}"
            )
        return np.flatnonzero(array)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(
            "unpenalized must be indices, a mask or names of columns; got an array of "
            f"{array.dtype}"
        )
    if array.ndim > 1:
        raise ValueError(f"unpenalized must be a list of columns; got shape {array.shape}")
    # Negative indices count from the end, as in NumPy.
    indices = array.reshape(-1).astype(np.int64)
    if indices.size and int(indices.min()) >= -n_features:
        indices = np.where(indices < 0, indices + n_features, indices)
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < n_features:
        raise ValueError(
            f"unpenalized: columns must be in [0, {n_features}), got values from "
            f"{indices.min()} to {indices.max()}"
        )
    return np.unique(indices)
