"""Fewer cases than a product, in which each pair of values still meets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def in_turn(first: Iterable[Any], second: Iterable[Any], third: Iterable[Any]) -> list[Any]:
    """Return all pairs of the first two with the third in turn: a square of Latin letters.

    The third list must be the shortest: each of its values then meets each of the others.
    """
    turns, others = list(third), list(second)
    return [
        (one, other, turns[(i + j) % len(turns)])
        for i, one in enumerate(first)
        for j, other in enumerate(others)
    ]
