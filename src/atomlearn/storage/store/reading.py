"""Reading: what is read of a store at a time, how far ahead, and what is believed of its sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """Sizes of requests to the system, found on NVMe and on network disks.

    No answer depends on them; ``benchmarks/on_disk.py`` times passes with them.
    """

    #: Bytes that a chunk has at least, unless its columns are all; read as one.
    chunk_bytes: int = 2**22
    #: A manifest is a few hundred bytes: whatever is longer is none.
    longest_manifest: int = 2**20
    #: int64 sizes of everything, so that no size of a file overflows.
    largest: int = 2**62
    #: Bytes read ahead of where the products are: many a disk wants several requests at a time.
    ahead_bytes: int = 2**25
    #: Columns this close together in the file are gathered by one read ...
    gap_bytes: int = 2**16
    #: ... of at most so many bytes.
    gather_bytes: int = 2**24
    #: Entries that kernels multiply on one thread: tiles have threads of their own.
    one_thread: int = 2**20 - 1
    #: Operations that reading and multiplying a byte are worth: what a thread is woken for.
    operations_per_byte: float = 5.0


READING = Reading()
