"""Global heaps of HDF5 files: looked at before the library walks them, some of them for ever.

A heap is a chain of objects, each with its size; texts of attributes lie in such heaps. HDF5 (2.0
and before) goes on by the size of a free object whatever it is, so that a size of 0 never ends, in
C, where neither a time limit nor Ctrl-C reaches it.
"""

from __future__ import annotations

import mmap
from pathlib import Path

SIGNATURE, HEAP = b"\x89HDF\r\n\x1a\n", b"GCOL"


def check_heaps(path: Path) -> None:
    """Raise where a global heap of the file has a free object of no size."""
    if not path.stat().st_size:
        return
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as held:
        # The width of sizes stands in the superblock, at a place that its version says.
        at = max(held.find(SIGNATURE), 0) + len(SIGNATURE)
        known = held[at : at + 8]
        width = known[6 if known[:1] in (b"\0", b"\1") else 2] if len(known) == 8 else 8
        place = held.find(HEAP)
        while place >= 0:
            if not _ends(held, place, width):
                raise ValueError(f"{path} is damaged: a heap of its texts has an object of size 0")
            place = held.find(HEAP, place + 1)


def _ends(held: mmap.mmap, place: int, width: int) -> bool:
    """Return whether the walk over a heap's objects comes to an end."""
    head = 8 + width
    size = int.from_bytes(held[place + 8 : place + head], "little")
    at, end = place + _aligned(head), min(place + size, len(held))
    while at + head <= end:
        is_free = held[at : at + 2] == b"\0\0"
        size = int.from_bytes(held[at + 8 : at + head], "little")
        if is_free and not size:
            return False
        at += size if is_free else _aligned(head) + _aligned(size)
    return True


def _aligned(size: int) -> int:
    return -(-size // 8) * 8
