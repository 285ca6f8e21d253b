"""Limits: what is fixed about every selection of the command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What no option says.

    folds : of a cross-validation; most_classes_guessed : a target of whole numbers with at most so
    many values is taken for classes; most_labels_named : in a message.
    """

    folds: int = 5
    most_classes_guessed: int = 20
    most_labels_named: int = 8


LIMITS = Limits()
