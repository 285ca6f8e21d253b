"""Limits of memory: compare declared sizes with the bytes of a file and with free memory.

Before a reader allocates memory for a size that a file declares, ``check_declared`` or ``fits``
must check the size.
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
    """Limits that keep a corrupt or malicious file from exhausting the memory."""

    #: Bytes that are read at a time; any file may take this much, whatever it declares.
    piece_bytes: int = 2**24
    #: Number of bytes at the beginning of a file from which encoding and delimiter are detected.
    head_bytes: int = 2**18
    #: Number of bytes of text above which polars is used; for less text, importing polars takes
    #: longer.
    fast_bytes: int = 2**22
    #: Largest number of bytes that one compressed byte may become.
    unpacked: int = 4096
    #: Memory that reading takes, as a multiple of the data: text while it is parsed, compressed
    #: data after decompression, and vectors over columns while the columns are read.
    copies: int = 5
    #: Columns that sparse data may have with any number of entries: a fit makes about ten vectors
    #: over them, of 32 MB each. More columns are allowed if they are at most ``unpacked`` times the
    #: number of stored entries. A wrong index could create 10^9 columns.
    sparse_columns: int = 2**22


LIMITS = FileLimits()


@contextmanager
def understood(path: object, what: str, remedy: str = "") -> Iterator[None]:
    """Raise ValueError "PATH is not a readable WHAT: ..." if the body of this ``with`` fails.

    Use it only around calls of other packages' parsers, so that a fault of this package is not
    reported as a fault of the file. Parsers may raise any error; their memory is limited to the
    free memory. ``path`` and ``what`` name the file and its kind, and ``remedy`` is the end of the
    message.
    """
    try:
        with enough(path), memory_capped():
            yield
    except Exception as error:
        # An OSError with a file name comes from the operating system, and its message is clear. So
        # is the message of ``enough`` about memory.
        has_name = isinstance(error, OSError) and error.filename is not None
        if has_name or isinstance(error.__cause__, MemoryError):
            raise
        raise ValueError(f"{path} is not a readable {what}: {short(error)}{remedy}") from error


#: Bytes that this process may hold, as set by a caller of ``within``; None: no limit.
_MOST: ContextVar[float | None] = ContextVar("most", default=None)


@contextlib.contextmanager
def within(memory_limit: int | None) -> Iterator[None]:
    """Limit the memory that all readers together may take in the body of this ``with``.

    ``memory_limit`` is in bytes, in addition to the memory in use; None keeps the limit that is
    already set.
    """
    previous = _MOST.get()
    try:  # try begins before anything is set, because Ctrl-C may interrupt between any two lines
        _MOST.set(previous if memory_limit is None else _memory_in_use()[1] + memory_limit)
        yield
    finally:
        _MOST.set(previous)


def refuse_changed(file: Path, before: os.stat_result) -> None:
    """Raise ValueError if size or time of a file differ from ``before``, its earlier status."""
    status = file.stat()
    if (status.st_size, status.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise ValueError(f"{file} changed while it was read; begin again once it is complete")


def is_large(n_bytes: int) -> bool:
    """Return whether data of ``n_bytes`` take more than a third of the free memory.

    Data of a few MB (``piece_bytes``) never do.
    """
    return n_bytes > LIMITS.piece_bytes and 3 * n_bytes > free_memory()


def room(shape: tuple[int, int], in_file: bool | None = None) -> NDArray[np.float64]:
    """Return an uninitialized float64 array of this shape, in Fortran order.

    A large one is a memory-mapped temporary file. ``in_file`` True puts it in a file, False in
    memory; None chooses by the free memory.
    """
    n_bytes = 8 * math.prod(shape)
    if not (is_large(n_bytes) if in_file is None else in_file):
        return np.empty(shape, order="F")
    with tempfile.TemporaryFile(prefix="atomlearn-") as file:
        # The file is written, not only declared: a full disk then raises an error here, and does
        # not crash the process later.
        for start in range(0, n_bytes, LIMITS.piece_bytes):
            file.write(bytes(min(LIMITS.piece_bytes, n_bytes - start)))
        return np.memmap(file, np.float64, "r+", 0, shape, "F")


@contextlib.contextmanager
def enough(path: object) -> Iterator[None]:
    """Raise ValueError about the file ``path`` if memory runs out in the body of this ``with``."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(
            f"{path} does not fit in memory: it takes more than may be taken ({short(error)}); "
            "raise the memory limit, or copy the file afresh"
        ) from error


def free_memory() -> float:
    """Return the number of bytes that this process may still take.

    It is the smallest of the free memory of the machine and of the unused parts of these limits:
    that of the control group (container), those of the process (``ulimit``), and that of
    ``within``. A limit that cannot be read is ignored.
    """
    # The machine: a line such as "MemAvailable:  8000000 kB".
    available = math.inf
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = 1024.0 * int(next(line for line in lines if "MemAvailable" in line).split()[1])
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        group_limit = int((group / "memory.max").read_text())
        available = min(available, group_limit - int((group / "memory.current").read_text()))
    # Limits of the process on its address space and on its data.
    space, resident, data = _memory_in_use()
    for kind, used in ((resource.RLIMIT_AS, space), (resource.RLIMIT_DATA, data)):
        soft_limit = resource.getrlimit(kind)[0]
        available = (
            available if soft_limit == resource.RLIM_INFINITY else min(available, soft_limit - used)
        )
    allowed = _MOST.get()
    return max(available if allowed is None else min(available, allowed - resident), 0.0)


@contextlib.contextmanager
def memory_capped() -> Iterator[None]:
    """Make allocations beyond the free memory raise MemoryError in the body of this ``with``.

    This includes allocations of C code. Declared sizes are checked before a file is read. This
    limit is for parsers of other packages: a file may make them take memory that it does not
    declare. On systems without such a limit this ``with`` changes nothing.
    """
    # The limit is of the whole process: the first of several threads sets it, the last resets it.
    with _CAP.lock:
        _CAP.blocks += 1
        if _CAP.blocks == 1:
            _CAP.before = resource.getrlimit(resource.RLIMIT_DATA)
            limit = _memory_in_use()[2] + max(free_memory(), LIMITS.piece_bytes)
            if limit < math.inf:
                resource.setrlimit(resource.RLIMIT_DATA, (int(limit), _CAP.before[1]))
    try:
        yield
    finally:
        with _CAP.lock:
            _CAP.blocks -= 1
            if not _CAP.blocks:
                resource.setrlimit(resource.RLIMIT_DATA, _CAP.before)


class _Cap:
    """Number of blocks in ``memory_capped`` in all threads, and the limit before the first one."""

    def __init__(self) -> None:
        """Begin with no block and no limit."""
        self.lock = threading.Lock()
        self.blocks = 0
        self.before = (0, 0)


_CAP = _Cap()


def _memory_in_use() -> tuple[int, int, int]:
    """Return the bytes of this process: address space, resident private memory, data.

    They are 0 on systems without /proc.
    """
    # The file has the pages of: address space, resident, shared, code, libraries, data.
    try:
        pages = [int(number) for number in Path("/proc/self/statm").read_text().split()]
    except (OSError, ValueError):
        return 0, 0, 0
    page = os.sysconf("SC_PAGESIZE")
    return pages[0] * page, (pages[1] - pages[2]) * page, pages[5] * page


def fits(path: object, what: str, n_bytes: int) -> None:
    """Raise ValueError if ``n_bytes`` are more than the free memory; a small piece always fits.

    ``path`` and ``what`` name the file and the part that takes the memory, for the message.
    """
    if n_bytes > LIMITS.piece_bytes and n_bytes > (available := free_memory()):
        raise ValueError(
            f"{path} does not fit in memory: {what} takes {n_bytes // 10**6:,} MB and "
            f"{available / 1e6:,.0f} MB may be taken; raise the memory limit, or let "
            "`atomlearn convert` make a store of it"
        )


def check_declared(path: object, what: str, declared: int, stored: int, ratio: int = 1) -> None:
    """Raise ValueError if the file declares more data than its bytes can hold.

    Parameters
    ----------
    path, what : str
        File and part of it, for the message.
    declared : int
        Bytes of ``what`` according to the file.
    stored : int
        Bytes that the file has for it.
    ratio : int
        Number of declared bytes that one stored byte can hold after decompression.
    """
    # A small piece of compressed data may have any ratio: it cannot exhaust the memory.
    if declared < 0 or declared > max(ratio * stored, (ratio > 1) * LIMITS.piece_bytes):
        raise ValueError(
            f"{path} is damaged or cut off: {what} should take {declared:,} bytes, and there are "
            f"{stored:,}; copy it afresh"
        )
