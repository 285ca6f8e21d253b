"""Checks of numbers among the parameters of parts, with the remedy."""

from __future__ import annotations

import math
import numbers
from typing import Any


def is_number(value: Any) -> bool:
    """Return whether this is a real number, of Python or NumPy; True and False are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return whether this is a number of an integer type; True and False are none."""
    return is_number(value) and isinstance(value, numbers.Integral)


def whole_number(owner: str, name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` as an int >= ``least``, or raise with the remedy."""
    if not is_whole(value):
        meant = is_number(value) and math.isfinite(value) and value == int(value)
        remedy = f"; use {name}={int(value)}" if meant else ""
        raise TypeError(
            f"{owner}: {name} must be a whole number of type int, got {value!r} of type "
            f"{type(value).__name__}{remedy or f'; pass an int such as {name}=10'}"
        )
    if value < least:
        raise ValueError(
            f"{owner}: {name} must be at least {least}, got {value}; use {name}={least} or more"
        )
    return int(value)


def positive_number(owner: str, name: str, value: Any) -> float:
    """Return ``value`` as a finite float > 0, or raise with the remedy."""
    if not is_number(value):
        raise TypeError(
            f"{owner}: {name} must be a number, got {value!r} of type {type(value).__name__}; "
            f"pass a float such as {name}=1.0"
        )
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(
            f"{owner}: {name} must be positive and finite, got {value}; use a value such as 1.0"
        )
    return number


def number_at_least(owner: str, name: str, value: Any, least: float) -> float:
    """Return ``value`` as a finite float >= ``least``, or raise with the remedy."""
    if not is_number(value):
        raise TypeError(
            f"{owner}: {name} must be a number, got {value!r} of type {type(value).__name__}; "
            f"pass a number such as {name}={least:g}"
        )
    number = float(value)
    if not (math.isfinite(number) and number >= least):
        raise ValueError(
            f"{owner}: {name} must be at least {least:g}, got {value}; use {name}={least:g} or more"
        )
    return number
