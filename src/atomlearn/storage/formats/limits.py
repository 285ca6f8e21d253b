"""Limits: what files of data may hold, and how much of one is read at a time.

No size that a file declares is believed before it was held against the bytes that the file has and
the memory that is free: ``held.py``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What stands between a file that is no table and all of memory."""

    #: Names that a message lists, where none of them is near the one asked for.
    most_names_listed: int = 10
    #: Letters of a name that messages repeat.
    longest_name: int = 40
    #: Bytes of a cell: text that is longer is not that of a data file.
    longest_cell: int = 2**27
    #: Bytes that are unpacked at a time.
    packed_bytes: int = 2**18
    #: What text takes while it is parsed, in times its bytes, at the least.
    parsed: int = 4
    #: Bytes of libsvm text that are parsed at once, and from which polars does it.
    parsed_bytes: int = 2**24
    fast_bytes: int = 2**20
    #: Numbers of a target that mostly tell already that not all are whole.
    looked_at: int = 1000
    #: Genotypes packed at a time.
    genotypes: int = 2**24
    #: Columns that sparse data may have however little of it there is (fits make some ten vectors
    #: over them, of 32 MB each), and beyond that for each stored entry: a wrong index makes 10^9.
    sparse_columns: int = 2**22
    columns_per_entry: int = 1000
    #: Vectors over columns, or over rows, that are made while data are read.
    vectors: int = 5


LIMITS = Limits()
