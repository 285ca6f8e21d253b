"""Limits: what files of data may hold, and how much of one is read at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What stands between a file that is no table and all of memory."""

    #: A column of text with more distinct values than this is refused, not one-hot encoded.
    most_categories: int = 20
    #: Names that a message lists, where none of them is near the one asked for.
    most_names_listed: int = 10
    #: Bytes of a line, and of a cell: text that is longer is not that of a data file.
    longest_line: int = 2**30
    longest_cell: int = 2**27
    #: What libsvm text takes while it is parsed, in times its bytes.
    parsed: int = 4
    #: Genotypes packed at a time.
    genotypes: int = 2**24


LIMITS = Limits()
