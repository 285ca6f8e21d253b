"""The rule: a reader gives an answer, or says what is wrong in one short line. Nothing else."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

#: What a fault of a file may be raised as; anything else is a bug of the reader.
POLITE = (ValueError, OSError)
#: Letters of a message without the path of the file.
LONGEST = 600
#: Seconds that a file of a few kB may take, and bytes that it may ask for beyond what is taken.
SECONDS, BYTES = 10, 2**26


class Impolite(AssertionError):
    """A reader did what no reader may: a traceback, a hang, all of memory, a wall of text."""


class _Hang(BaseException):
    """Beyond every ``except Exception``."""


def judge(read: Callable[[Path], object], path: Path) -> str:
    """Return "read" or "refused"; raise Impolite for everything else."""
    try:
        with _time_limit(SECONDS):
            read(path)
    except _Hang:
        raise Impolite(f"it takes more than {SECONDS} s") from None
    except POLITE as error:
        message = str(error).replace(str(path), "PATH")
        if not message.strip():
            raise Impolite(f"{type(error).__name__} without a message") from error
        if "\n" in message or len(message) > LONGEST:
            raise Impolite(
                f"{type(error).__name__} of {len(message)} letters: {message!r:.300}"
            ) from error
        return "refused"
    except Exception as error:
        raise Impolite(f"{type(error).__name__}: {error}"[:300]) from error
    return "read"


@contextmanager
def _time_limit(seconds: float):
    def ring(*_: object) -> None:
        raise _Hang

    # Of processor time: a busy machine is no hang. What waits for ever, the campaign ends.
    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def memory_limit(n_bytes: int = BYTES):
    """Let this process have so many bytes of address space more than it has now."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
