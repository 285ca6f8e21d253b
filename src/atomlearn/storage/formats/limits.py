"""Limits: what files of data may hold, and how much of one is read at a time.

No size that a file declares is believed before it was held against the bytes that the file has and
the memory that is free: ``held.py``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What stands between a file that is no table and all of memory."""

    #: Bytes that are read at a time, and that are given to any file, whatever it declares.
    piece_bytes: int = 2**24
    #: Bytes that encoding and delimiter are found from.
    head_bytes: int = 2**18
    #: Bytes of text from which polars reads it: below, to import it takes longer.
    fast_bytes: int = 2**22
    #: Bytes that one compressed byte can stand for at most.
    unpacked: int = 4096
    #: Times its own bytes that data take on the way: text while it is parsed, what is compressed
    #: once it is not, and vectors over columns while the columns are read.
    copies: int = 5
    #: Columns that sparse data may have however little of it there is (fits make some ten vectors
    #: over them, of 32 MB each); beyond that, ``unpacked`` for each stored entry. A wrong index
    #: makes 10^9.
    sparse_columns: int = 2**22


LIMITS = Limits()
