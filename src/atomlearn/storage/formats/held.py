"""Held: what a file says of its sizes, against the bytes it has and the memory that is free.

No declared size is believed, and nothing allocated, before ``hold`` or ``fits`` was asked.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.messages import short


@dataclass(frozen=True, slots=True)
class FileLimits:
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


LIMITS = FileLimits()


@contextmanager
def understood(path: object, what: str, remedy: str = "") -> Iterator[None]:
    """Raise ValueError "PATH is not a readable WHAT: ..." where a parser in this block fails.

    Only calls of others' parsers belong in such a block: faults of our own must not pass for
    faults of the file. They may raise anything, and take no more memory than there is.
    """
    try:
        with enough(path), capped():
            yield
    except Exception as error:
        # An OSError with the name of a file is the system's, and goes through as it is.
        known = isinstance(error, OSError) and error.filename is not None
        if known or isinstance(error.__cause__, MemoryError):
            raise
        raise ValueError(f"{path} is not a readable {what}: {short(error)}{remedy}") from error


#: What a caller allows from now on, in bytes that this process holds; None without a limit.
_MOST: ContextVar[float | None] = ContextVar("most", default=None)


@contextlib.contextmanager
def within(memory_limit: int | None) -> Iterator[None]:
    """Let readers take no more than so many bytes, all together, until this block ends."""
    before = _MOST.get()
    try:  # before anything is set: Ctrl-C may come between any two lines
        _MOST.set(before if memory_limit is None else _taken()[1] + memory_limit)
        yield
    finally:
        _MOST.set(before)


def refuse_changed(file: Path, before: os.stat_result) -> None:
    """Raise ValueError where a file is no more what it was when it was begun to read."""
    now = file.stat()
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise ValueError(f"{file} changed while it was read; begin again once it is complete")


def is_large(n_bytes: int) -> bool:
    """Whether data take more than a third of the memory that is left."""
    return n_bytes > LIMITS.piece_bytes and 3 * n_bytes > free_memory()


def room(shape: tuple[int, int], in_file: bool | None = None) -> NDArray[np.float64]:
    """Return an array to be filled column by column; in a file without a name where it is large."""
    n_bytes = 8 * math.prod(shape)
    if not (is_large(n_bytes) if in_file is None else in_file):
        return np.empty(shape, order="F")
    with tempfile.TemporaryFile(prefix="atomlearn-") as file:
        # Written, not only declared: a full disk is an error here, and would be a crash later.
        for start in range(0, n_bytes, LIMITS.piece_bytes):
            file.write(bytes(min(LIMITS.piece_bytes, n_bytes - start)))
        return np.memmap(file, np.float64, "r+", 0, shape, "F")


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
            most = _taken()[2] + max(free_memory(), LIMITS.piece_bytes)
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
        self.lock = threading.Lock()
        self.blocks = 0
        self.before = (0, 0)


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
    if n_bytes > LIMITS.piece_bytes and n_bytes > (free := free_memory()):
        raise ValueError(
            f"{path} does not fit in memory: {what} takes {n_bytes // 10**6:,} MB and "
            f"{free / 1e6:,.0f} MB may be taken; raise the memory limit, or let "
            "`atomlearn convert` make a store of it"
        )


def believe(path: object, what: str, declared: int, stored: int, ratio: int = 1) -> None:
    """Raise ValueError where the file says more than it can hold.

    declared : bytes that ``what`` takes as the file says; stored : bytes there are of it; ratio :
    how many of the former one of the latter can stand for.
    """
    if declared < 0 or declared > max(ratio * stored, (ratio > 1) * LIMITS.piece_bytes):
        raise ValueError(
            f"{path} is damaged or cut off: {what} should take {declared:,} bytes, and there are "
            f"{stored:,}; copy it afresh"
        )
