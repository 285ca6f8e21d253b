"""Limits: what is fixed about every selection of the command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What no option says.

    folds : of a cross-validation; most_classes_guessed : a target of whole numbers with at most so
    many values is taken for classes; halves, small,
    seconds_of_halves : fits to halves of the rows, of data with so many entries at most, in so many
    seconds; large : entries beyond which no twins and no places are
    looked up, and selectors that hold all in memory refuse.
    """

    folds: int = 5
    most_classes_guessed: int = 20
    halves: int = 10
    small: int = 500_000
    seconds_of_halves: float = 1.5
    large: int = 200_000_000


LIMITS = Limits()
