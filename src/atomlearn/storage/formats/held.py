"""Held: what a file says of its sizes, against the bytes it has and the memory that is free.

No declared size is believed, and nothing allocated, before ``hold`` or ``fits`` was asked.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Believed:
    """What is believed of a file.

    deflated : bytes that one compressed byte can stand for, 1032 with deflate; filtered : more
    where there are filters before it; granted : bytes that are given to any file, whatever its
    size; shown : letters of a parser's own message that are repeated.
    """

    deflated: int = 1032
    filtered: int = 4096
    granted: int = 2**24
    shown: int = 200


BELIEVED = Believed()


def free_memory() -> float:
    """Return the bytes of memory that this process may still fill, infinite where nobody says."""
    free = math.inf
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = 1024.0 * int(next(line for line in lines if "MemAvailable" in line).split()[1])
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text())
        free = min(free, most - int((group / "memory.current").read_text()))
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError, ValueError, IndexError):
            taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
            free = min(free, most - taken)
    return max(free, 0.0)


def fits(path: object, what: str, n_bytes: int) -> None:
    """Raise ValueError where ``what`` takes more memory than there is."""
    if n_bytes > BELIEVED.granted and n_bytes > (free := free_memory()):
        raise ValueError(
            f"{path} does not fit in memory: {what} takes {_shown(n_bytes)} and {_shown(free)} are "
            "free; `atomlearn convert` makes a store of it, which is read a piece at a time"
        )


def hold(path: object, what: str, declared: int, stored: int, ratio: int = 1) -> None:
    """Raise ValueError where the file says more than it can hold, or more than memory can.

    declared : bytes that ``what`` takes as the file says; stored : bytes there are of it; ratio :
    how many of the former one of the latter can stand for.
    """
    if declared < 0 or (declared > ratio * stored and (ratio == 1 or declared > BELIEVED.granted)):
        raise ValueError(
            f"{path} is damaged or cut off: {what} should take {declared:,} bytes, and there are "
            f"{stored:,}; copy it afresh"
        )
    fits(path, what, declared)


def short(error: BaseException) -> str:
    """Return what a parser says as one line of a message."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= BELIEVED.shown else text[: BELIEVED.shown - 3] + "..."


def _shown(n_bytes: float) -> str:
    if n_bytes == math.inf:
        return "any number of bytes"
    for unit, size in (("TB", 1e12), ("GB", 1e9)):
        if n_bytes >= size:
            return (
                f"{n_bytes / size:,.1f} {unit}"
                if n_bytes < 1e18
                else f"{n_bytes / size:.1e} {unit}"
            )
    return f"{n_bytes / 1e6:,.0f} MB"
