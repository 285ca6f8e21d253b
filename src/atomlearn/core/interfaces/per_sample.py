"""What is given for each sample: weights and offsets, checked before any arithmetic."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces.arrays import Array
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
        raise ValueError(
            "sample_weight is zero for every sample (class_weight included); give at least one "
            "sample a weight > 0"
        )
    return weight


def normalized(sample_weight: object, n_samples: int) -> Array:
    """Return s_i / sum s, which make the sum over samples a mean, without overflow."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples)
    weight = check_weight(sample_weight, n_samples)
    weight = weight / weight.max()
    result: Array = weight / weight.sum()
    return result


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
