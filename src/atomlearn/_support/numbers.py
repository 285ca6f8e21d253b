"""Checks of numbers and strings among the arguments of users; errors name a remedy."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from atomlearn._support.arrays import Array


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a real number of Python or NumPy; booleans are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return whether ``value`` is of an integer type of Python or NumPy; booleans are not."""
    return is_number(value) and isinstance(value, numbers.Integral)


def all_text(values: Iterable[object]) -> bool:
    """Return whether all ``values`` are strings."""
    return all(isinstance(value, str) for value in values)


def unmasked(name: str, values: Any) -> Any:
    """Return ``values``; raise ValueError if some are masked: NumPy would use what the mask hides.

    ``name`` is the name of the argument for the error, as in all functions here.
    """
    mask = np.ma.getmask(values)
    # The mask of a structured array has one boolean field for each of its fields.
    if mask is not np.ma.nomask and np.ascontiguousarray(mask).view(np.bool_).any():
        raise ValueError(f"{name} has masked entries; drop those samples, or {name}.filled(value)")
    return values


def whole_number(owner: str, name: str, value: Any, least: int = 1, most: float = math.inf) -> int:
    """Return ``value`` as an int from ``least`` to ``most``, or raise with the remedy.

    ``owner`` is the class or function, and ``name`` its parameter, for the error.
    """
    if not is_whole(value):
        # A float such as 3.0 means a whole number: the message suggests the int.
        is_integral = is_number(value) and math.isfinite(value) and value == int(value)
        remedy = f"; use {name}={int(value)}" if is_integral else ""
        raise TypeError(
            f"{owner}: {name} must be a whole number of type int, got {value!r} of type "
            f"{type(value).__name__}{remedy or f'; pass an int such as {name}=10'}"
        )
    if value < least:
        raise ValueError(
            f"{owner}: {name} must be at least {least}, got {value}; use {name}={least} or more"
        )
    if value > most:
        raise ValueError(
            f"{owner}: {name} must be between {least} and {most}, got {value}; use {name}={most}"
        )
    return int(value)


def positive(name: str, value: Any, what: str = "", least: float = 0.0) -> float:
    """Return ``value`` as a finite float > 0 and >= ``least``, or raise.

    ``name`` is the parameter for the error, and ``what`` explains it there.
    """
    explanation = f" ({what})" if what else ""
    if not is_number(value):
        raise TypeError(f"{name} must be a positive number{explanation}, got {value!r}")
    number = float(value)
    if not (math.isfinite(number) and number > 0 and number >= least):
        bound = f"at least {least:g}" if least else "positive and finite"
        raise ValueError(f"{name} must be {bound}{explanation}, got {value!r}")
    return number


def check_share(name: str, value: Any, usual: float) -> None:
    """Raise ValueError unless 0 < ``value`` < 1.

    The message has the ``name`` of the parameter and a ``usual`` value.
    """
    if not (is_number(value) and 0 < value < 1):
        raise ValueError(f"{name} must be between 0 and 1, such as {usual}, got {value!r}")


def check_weight(sample_weight: object, n_samples: int) -> Array:
    """Return ``sample_weight`` as float64 of shape (n_samples,), or raise with the reason.

    None: ones, read-only and stored once.
    """
    if sample_weight is None:
        return np.broadcast_to(np.ones(1), (n_samples,))
    weight = _one_each("sample_weight", sample_weight, n_samples, "weight", "")
    # Name the first negative weight.
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
    """Return s_i / sum s for s = ``sample_weight``, without overflow; None: 1 / n_samples."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples)
    weight = check_weight(sample_weight, n_samples)
    weight = weight / weight.max()
    result: Array = weight / weight.sum()
    return result


def mean_weight(sample_weight: object, n_samples: int) -> Array:
    """Return s_i / sum s for s = ``sample_weight``, (n_samples,).

    None: 1 / n_samples, as a read-only array that stores one number.
    """
    if sample_weight is None:
        return np.broadcast_to(1.0 / n_samples, (n_samples,))
    return normalized(sample_weight, n_samples)


def check_offset(offset: object, n_samples: int) -> Array:
    """Return ``offset`` as float64 of shape (n_samples,), or raise with the reason."""
    remedy = " (the logarithm of an exposure of 0 is not: leave such samples out)"
    return _one_each("offset", offset, n_samples, "number", remedy)


def _one_each(name: str, value: object, n_samples: int, unit: str, remedy: str) -> Array:
    """Return ``value`` as finite float64 numbers, (n_samples,); a single number is repeated.

    ``name`` is the argument for the error, ``unit`` is the word for one entry there, and ``remedy``
    is a hint for entries that are not finite.
    """
    unmasked(name, value)
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c":
            raise TypeError("they are complex; pass their real part")
        numbers = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers: {error}") from error
    # A single number applies to every sample.
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


def finite(numbers: Array) -> Array:
    """Return ``numbers``; raise ValueError if one of them is NaN or infinite."""
    bad = ~np.isfinite(numbers)
    if bad.any():
        # ``numbers`` may have several columns: the index is that of a row.
        first = int(np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))[0])
        raise ValueError(
            f"y holds {int(bad.sum())} values that are NaN or infinite, the first at index "
            f"{first}; drop those samples or fill them in"
        )
    return numbers
