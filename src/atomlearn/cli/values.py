"""Values of options: numbers, sizes and shares, read from text or refused in one line."""

from __future__ import annotations

import argparse
import math
from typing import Any


def number(text: str, kind: type, expected: str) -> Any:
    """Return the text as a number of this kind, or say what was expected."""
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}") from None


def place(text: str) -> str:
    """Return the name of a file or a folder, which an empty shell variable is not."""
    if not text:
        raise argparse.ArgumentTypeError("expected a name, got ''")
    return text


def positive(text: str) -> float:
    """Return a positive, finite number."""
    value: float = number(text, float, "a positive number")
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text}")
    return value


def size(text: str) -> int:
    """Return a size such as 500M or 4G in bytes."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
    digits, unit = text.strip().upper().removesuffix("B"), 1
    if digits and digits[-1] in units:
        digits, unit = digits[:-1], units[digits[-1]]
    value: float = number(digits, float, "a size such as 500M or 4G")
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a size such as 500M or 4G, got {text!r}")
    return int(value * unit)


def count(text: str) -> int:
    """Return a whole number of at least 1."""
    value: int = number(text, int, "a whole number of at least 1")
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text}")
    return value


def count_or_auto(text: str) -> int | str:
    """Return a whole number of at least 1, or ``auto``."""
    return text if text == "auto" else count(text)


def positive_or_auto(text: str) -> float | None:
    """Return a positive number, None for auto."""
    return None if text == "auto" else positive(text)


def seed(text: str) -> int:
    """Return a whole number that seeds random numbers."""
    value: int = number(text, int, "a whole number of at least 0")
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 2**32 - 1, got {text}")
    return value


def share(text: str) -> float:
    """Return a number above 0 and below 1."""
    value = positive(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"expected a share below 1 such as 0.1, got {text}")
    return value


def fraction(text: str) -> float:
    """Return a number from 0 to below 1."""
    value: float = number(text, float, "a share such as 0.25")
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0 to below 1, got {text}")
    return value
