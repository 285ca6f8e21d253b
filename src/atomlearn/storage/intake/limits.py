"""Limits: how much of a file is looked at, and from where on a column is something else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What no option says; ``benchmarks/reading.py`` times reading at these sizes."""

    #: Bytes of text from which polars reads it: below, to import it takes longer.
    fast_bytes: int = 2**22
    #: Bytes of a plain file from which one call reads all of it.
    whole_bytes: int = 2**25
    #: Bytes of text that are parsed at once: more take more memory and are not read sooner.
    block_bytes: int = 2**24
    #: Times as many bytes that compressed text is taken to have, before it is read.
    packed: int = 5
    #: Bytes and lines that encoding, delimiter and types are found from.
    head_bytes: int = 2**18
    sniffed: int = 30
    #: Rows in which the values of a column of numbers are counted.
    counted: int = 100_000
    #: A text column with at most so many values is a category; with at most ``many_values``, where
    #: each comes ``rows_a_value`` times.
    most_values: int = 20
    many_values: int = 100
    rows_a_value: int = 10
    #: Words in a cell, on average, from which text is free text.
    free_words: float = 3.5
    #: Share of cells that are numbers from which the others are strays.
    numbers_share: float = 0.8
    #: Words kept of a free text: those in at least so many rows, and the most frequent of them.
    least_rows_a_word: int = 2
    most_words: int = 20000
    #: What PLINK writes for an unknown phenotype.
    unknown: float = -9.0
    #: Letters of a message, and names in a list of it.
    message: int = 480
    names: int = 4


INTAKE = Limits()
