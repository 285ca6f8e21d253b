"""Checks of targets y, for losses of numbers and losses of two labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import Array, finite, unmasked


def regression_target(y: object) -> Array:
    """Return y as a one-dimensional, finite float64 array, or raise ValueError."""
    values = _one_dimensional(y)
    if values.dtype.kind in "mM":
        raise ValueError(
            f"y must hold numbers; received {values.dtype}. Subtract a date and divide by a unit, "
            "such as (y - y.min()) / np.timedelta64(1, 'D'), which gives days"
        )
    try:
        if values.dtype.kind in "OUS":
            # This refuses texts, which have no magnitude; ``astype`` would parse "3" as a number.
            np.abs(values)
        numbers = values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must hold numbers; received values of type {_type_names(values)}. Convert them to "
            "numbers (y.astype(float)), or choose a classification loss if they are labels"
        ) from error
    return finite(numbers)


def positive_target(y: object, name: str, *, zero: bool) -> Array:
    """Return y as float64; raise unless all entries are > 0, or >= 0 if ``zero``.

    ``name`` is the name of the loss for the error.
    """
    numbers = regression_target(y)
    wrong = numbers < 0.0 if zero else numbers <= 0.0
    if wrong.any():
        first = int(np.argmax(wrong))
        bound = ">= 0" if zero else "> 0"
        raise ValueError(
            f"y must hold numbers {bound} for the loss {name!r}; received {numbers[first]:g} at "
            f"index {first}. Check the target, or use the squared loss, which takes any numbers"
        )
    return numbers


def binary_target(y: object) -> Array:
    """Return y as float64 labels -1 and +1; accepts {-1, +1}, {0, 1} and bool.

    A single label is accepted too, since a fold of cross-validation may have only one class. 0 and
    -1 mean the negative class, 1 the positive one.
    """
    values = _one_dimensional(y)
    try:
        numbers = values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(_label_message(values)) from error
    numbers = finite(numbers)
    # Either {-1, +1} or {0, 1}; a mixture of 0 and -1 is refused.
    positive = numbers == 1.0
    if np.all(positive | (numbers == -1.0)):
        return numbers
    if np.all(positive | (numbers == 0.0)):
        return np.where(positive, 1.0, -1.0)
    raise ValueError(_label_message(values))


def _one_dimensional(y: object) -> NDArray[Any]:
    """Return ``y`` as a vector of real numbers; raise ValueError if it is no vector."""
    values = np.asarray(unmasked("y", y))
    if values.ndim != 1:
        remedy = (
            "pass y.ravel()"
            if values.ndim == 2 and 1 in values.shape
            else "pass one target per sample"
        )
        raise ValueError(f"y must be one-dimensional; received shape {values.shape}; {remedy}")
    if values.size == 0:
        raise ValueError("y is empty; expected one target per sample, at least one sample")
    if np.iscomplexobj(values):
        raise ValueError("y is complex; expected real numbers, for example y.real")
    return values


def _type_names(values: NDArray[Any]) -> str:
    """Return the names of the types of ``values``, for an error message."""
    if values.dtype != np.dtype(object):
        return str(values.dtype)
    return ", ".join(sorted({type(value).__name__ for value in values}))


def _label_message(values: NDArray[Any]) -> str:
    """Return the error message for a two-class target ``values`` with other labels."""
    # The distinct labels in the order of their first occurrence.
    labels = list(dict.fromkeys(values.tolist()))
    most_listed = 5
    listing = ", ".join(repr(label) for label in labels[:most_listed])
    if len(labels) > most_listed:
        listing += f", ... ({len(labels)} distinct values)"
    return (
        f"y must hold the two labels -1 and +1 (or 0 and 1, or booleans); found {listing}. Map one "
        "label to +1 and the rest to -1, for example np.where(y == positive_label, 1, -1), use a "
        "classifier (which encodes labels itself), or the squared loss if y is a quantity"
    )
