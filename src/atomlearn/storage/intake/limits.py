"""Limits: from where on a column is something else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KindLimits:
    """What columns are taken for; a schema says otherwise."""

    #: Lines that delimiter and header are found from.
    sniffed: int = 30
    #: A text column with at most so many values is a category; with at most ``many_values``, where
    #: each comes ``most_values`` times on average.
    most_values: int = 20
    many_values: int = 100
    #: Words in a cell, on average, from which text is free text.
    free_words: float = 3.5
    #: Share of cells that are numbers from which the others are strays.
    numbers_share: float = 0.8


INTAKE = KindLimits()
