"""Budget: how much a device makes at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Sizes of pieces on a device; no answer depends on them but by the bounds that are proved.

    ``benchmarks/device.py`` times passes in them.
    """

    #: Entries of dense X made float64 at a time (128 MB): fewer would be all starting of work.
    tile_entries: int = 2**24
    #: Stored entries of sparse X made float64 at a time (64 MB).
    sparse_entries: int = 2**23
    #: Terms over which float32 sums run before they are added in float64: the error of a score is
    #: that of so many.
    single_terms: int = 4096
    #: Entries of columns that are not simply there and are made, and held, for a pass (256 MB).
    held_entries: int = 2**26
    #: Entries of columns read at a time where they are not held.
    side_entries: int = 2**26


BUDGET = Budget()
