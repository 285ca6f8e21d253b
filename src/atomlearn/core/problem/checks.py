"""Checks of numbers and of sample weights, before any arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Loss, is_number
from atomlearn.core.interfaces.numbers import unmasked


def check_weight(sample_weight: object, n_samples: int) -> Array:
    """Return the sample weights as float64 of shape (n_samples,), or say what is wrong.

    None: ones, read-only and stored once.
    """
    if sample_weight is None:
        return np.broadcast_to(np.ones(1), (n_samples,))
    weight = _one_each("sample_weight", sample_weight, n_samples, "weight", "")
    if (weight < 0).any():
        position = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(
            f"sample_weight[{position}] is {weight[position]}; weights must be >= 0 "
            "(0 leaves a sample out)"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero for every sample; give at least one a weight > 0")
    return weight


def check_tau(tau: Any) -> None:
    """Raise where the weight of the ridge term is no finite number >= 0."""
    if not is_number(tau):
        raise TypeError(f"tau must be a number >= 0, got {type(tau).__name__}")
    if not (math.isfinite(tau) and tau >= 0):
        raise ValueError(f"tau must be finite and >= 0, got {tau}")


def check_loss(loss: Loss, y: Array, weight: Array, fit_intercept: Any) -> None:
    """Raise where an intercept is not what it can have, or f(0) is beyond float64: no gap."""
    if fit_intercept not in (0, 1):
        raise TypeError(f"the intercept is fitted or not: True or False, got {fit_intercept!r}")
    if fit_intercept and loss.task == "survival":
        raise ValueError(
            f"the loss {loss.name!r} has no intercept: the baseline hazard takes its place; "
            "leave it out"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        value = loss.value(y, np.zeros(y.shape[0]), weight)
    # Its square is as large as what is computed from it.
    if not math.isfinite(value * value):
        raise ValueError(
            f"y is too large for float64: the loss {loss.name!r} of predicting 0 is {value}; "
            "divide y, or the sample weights, by their largest number"
        )


def check_offset(offset: object, n_samples: int) -> Array:
    """Return the offset as float64 of shape (n_samples,), or say what is wrong."""
    remedy = " (the logarithm of an exposure of 0 is not: leave such samples out)"
    return _one_each("offset", offset, n_samples, "number", remedy)


def _one_each(name: str, given: object, n_samples: int, unit: str, remedy: str) -> Array:
    """Return one finite float64 a sample, (n_samples,): a single number serves all of them."""
    unmasked(name, given)
    try:
        array = np.asarray(given)
        if array.dtype.kind == "c":
            raise TypeError("they are complex; pass their real part")
        numbers = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers: {error}") from error
    if numbers.ndim == 0:
        numbers = np.full(n_samples, float(numbers))
    if numbers.shape != (n_samples,):
        raise ValueError(
            f"{name} must have shape ({n_samples},), one {unit} a sample; got {numbers.shape}"
        )
    if not np.isfinite(numbers).all():
        position = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(
            f"{name}[{position}] is {numbers[position]}; {unit}s must be finite{remedy}"
        )
    return numbers


def check_free(columns: object, n_features: int) -> Columns:
    """Return free columns as increasing int64 indices, or say what is wrong with them."""
    given = np.asarray(columns)
    if given.dtype == np.bool_:
        if given.shape != (n_features,):
            raise ValueError(
                f"unpenalized: a mask must have shape ({n_features},), one entry a column; got "
                f"{given.shape}"
            )
        return np.flatnonzero(given)
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(
            "unpenalized must be indices, a mask or names of columns; got an array of "
            f"{given.dtype}"
        )
    if given.ndim > 1:
        raise ValueError(f"unpenalized must be a list of columns; got shape {given.shape}")
    indices = given.reshape(-1).astype(np.int64)
    if indices.size and int(indices.min()) >= -n_features:
        indices = np.where(indices < 0, indices + n_features, indices)
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < n_features:
        raise ValueError(
            f"unpenalized: columns must lie in [0, {n_features}), got values from "
            f"{indices.min()} to {indices.max()}"
        )
    return np.unique(indices)
