"""Held: what a file says of its sizes, against the bytes it has and the memory that is free.

No declared size is believed, and nothing allocated, before ``hold`` or ``fits`` was asked.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import threading
from collections.abc import Iterator
from contextvars import ContextVar
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


#: What a caller allows from now on, in bytes that this process holds; None without a limit.
_MOST: ContextVar[float | None] = ContextVar("most", default=None)


@contextlib.contextmanager
def within(memory_limit: int | None) -> Iterator[None]:
    """Let readers take no more than so many bytes, all together, until this block ends."""
    most = None if memory_limit is None else _taken()[1] + memory_limit
    token = _MOST.set(most)
    try:
        yield
    finally:
        _MOST.reset(token)


@contextlib.contextmanager
def enough(path: object) -> Iterator[None]:
    """Raise ValueError with the remedy where memory does not suffice in this block."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(
            f"{path} does not fit in memory: it takes more than may be taken ({short(error)}); "
            "raise the memory limit, or copy the file afresh"
        ) from error


def free_memory() -> float:
    """Return the bytes that this process may still fill: of the machine, and of its limits."""
    free = math.inf
    with contextlib.suppress(OSError, ValueError):
        # What is free and never used: less than what there is, and all that some systems tell.
        free = float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGESIZE")
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = 1024.0 * int(next(line for line in lines if "MemAvailable" in line).split()[1])
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        most = int((group / "memory.max").read_text())
        free = min(free, most - int((group / "memory.current").read_text()))
    space, resident, data = _taken()
    for limit, taken in ((resource.RLIMIT_AS, space), (resource.RLIMIT_DATA, data)):
        most = resource.getrlimit(limit)[0]
        free = free if most == resource.RLIM_INFINITY else min(free, most - taken)
    allowed = _MOST.get()
    return max(free if allowed is None else min(free, allowed - resident), 0.0)


@contextlib.contextmanager
def capped() -> Iterator[None]:
    """Have all that asks for more memory than may be taken fail in this block, in C as well.

    What a file declares is looked at before it is read; here are the parsers of others, which a
    file may lead to take what it does not declare. Where the system has no such limit, nothing is
    held back.
    """
    with _CAP.lock:
        _CAP.blocks += 1
        if _CAP.blocks == 1:
            _CAP.before = resource.getrlimit(resource.RLIMIT_DATA)
            most = _taken()[2] + max(free_memory(), BELIEVED.granted)
            if most < math.inf:
                resource.setrlimit(resource.RLIMIT_DATA, (int(most), _CAP.before[1]))
    try:
        yield
    finally:
        with _CAP.lock:
            _CAP.blocks -= 1
            if not _CAP.blocks:
                resource.setrlimit(resource.RLIMIT_DATA, _CAP.before)


class _Cap:
    """How many blocks of all threads are in ``capped``, and the limit before the first of them."""

    def __init__(self) -> None:
        self.lock, self.blocks, self.before = threading.Lock(), 0, (0, 0)


_CAP = _Cap()


def _taken() -> tuple[int, int, int]:
    """Return the bytes of this process: address space, memory held, memory for its own data."""
    try:
        pages = [int(number) for number in Path("/proc/self/statm").read_text().split()]
    except (OSError, ValueError):
        return 0, 0, 0
    page = os.sysconf("SC_PAGESIZE")
    return pages[0] * page, (pages[1] - pages[2]) * page, pages[5] * page


def fits(path: object, what: str, n_bytes: int) -> None:
    """Raise ValueError where ``what`` takes more memory than there is."""
    if n_bytes > BELIEVED.granted and n_bytes > (free := free_memory()):
        raise ValueError(
            f"{path} does not fit in memory: {what} takes {_shown(n_bytes)} and {_shown(free)} may "
            "be taken; raise the memory limit, or let `atomlearn convert` make a store of it"
        )


def hold(path: object, what: str, declared: int, stored: int, ratio: int = 1) -> None:
    """Raise ValueError where the file says more than it can hold, or more than memory can."""
    believe(path, what, declared, stored, ratio)
    fits(path, what, declared)


def believe(path: object, what: str, declared: int, stored: int, ratio: int = 1) -> None:
    """Raise ValueError where the file says more than it can hold.

    declared : bytes that ``what`` takes as the file says; stored : bytes there are of it; ratio :
    how many of the former one of the latter can stand for.
    """
    if declared < 0 or (declared > ratio * stored and (ratio == 1 or declared > BELIEVED.granted)):
        raise ValueError(
            f"{path} is damaged or cut off: {what} should take {declared:,} bytes, and there are "
            f"{stored:,}; copy it afresh"
        )


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
