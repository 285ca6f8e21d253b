"""Limits: what is fixed about every selection of the command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What no option says.

    folds : of a cross-validation; most_classes_guessed : a target of whole numbers with at most so
    many values is taken for classes; seconds_of_halves : for fits to halves of the rows; large :
    entries beyond which no twins and no places are looked up, and selectors that hold all in
    memory refuse.
    """

    folds: int = 5
    most_classes_guessed: int = 20
    seconds_of_halves: float = 1.5
    large: int = 200_000_000


LIMITS = Limits()
