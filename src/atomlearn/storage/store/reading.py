"""Reading: how much of a file is read at a time, and how far ahead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """Sizes of requests to the system, found on NVMe and on network disks; no answer depends on
    them."""

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
