"""Checks of numbers among the parameters of parts, with the remedy."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np


def is_number(value: Any) -> bool:
    """Return whether this is a real number, of Python or NumPy; True and False are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return whether this is a number of an integer type; True and False are none."""
    return is_number(value) and isinstance(value, numbers.Integral)


def unmasked(name: str, values: Any) -> Any:
    """Return what was given, refused where entries are masked: NumPy reads what masks hide."""
    # The mask of records has a field for each of theirs.
    if np.ascontiguousarray(np.ma.getmask(values)).view(np.bool_).any():
        raise ValueError(f"{name} has masked entries; drop those samples, or {name}.filled(value)")
    return values


def whole_number(owner: str, name: str, value: Any, least: int = 1, most: float = math.inf) -> int:
    """Return ``value`` as an int from ``least`` to ``most``, or raise with the remedy."""
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
    if value > most:
        raise ValueError(
            f"{owner}: {name} must lie between {least} and {most}, got {value}; use {name}={most}"
        )
    return int(value)


def positive_number(owner: str, name: str, value: Any, least: float = 0.0) -> float:
    """Return ``value`` as a finite float > 0 and >= ``least``, or raise with the remedy."""
    if not is_number(value):
        raise TypeError(
            f"{owner}: {name} must be a number, got {value!r} of type {type(value).__name__}; "
            f"pass a float such as {name}=1.0"
        )
    number = float(value)
    if not (math.isfinite(number) and number > 0 and number >= least):
        bound = f"at least {least:g}" if least else "positive and finite"
        raise ValueError(
            f"{owner}: {name} must be {bound}, got {value}; use a value such as {least or 1.0:g}"
        )
    return number
