"""Sharing: what the memory allowed is used for, and how often work is put on record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a conversion keeps to its memory, and what a kill costs it; no store depends on it."""

    #: Memory below this leaves no room for a piece of anything.
    least_memory: int = 2**20
    #: Memory is shared between a block's rows, their transposed copy, and what parsing leaves
    #: about.
    blocks: int = 6
    #: Bytes an entry takes while a bucket of columns is put together: its value and row, twice.
    entry_bytes: int = 40
    #: Seconds of work that a kill may cost: what is done is put on record so often.
    record_s: float = 1.0


SHARING = Sharing()
