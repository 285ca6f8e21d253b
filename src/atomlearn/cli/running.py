"""How a command runs, whatever it does: threads, memory, a run that is repeated, what it took."""

from __future__ import annotations

import contextlib
import json
import resource
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from atomlearn.cli.errors import CommandError


def with_config(given: Sequence[str]) -> list[str]:
    """Return the words of a command with those of the run that --config repeats in front.

    What is given beside it takes the place of what the file says: the data, where the first word
    is a file, and options; lists such as --drop are added to.
    """
    words = list(given)
    if "--config" not in words:
        return words
    place = words.index("--config")
    if place + 1 == len(words):
        raise CommandError("--config needs the summary.json of an earlier run")
    file = Path(words[place + 1])
    del words[place : place + 2]
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        saved = shlex.split(content["command"])[1:]
    except OSError as error:
        raise CommandError(f"--config {file}: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CommandError(
            f"--config {file} is no summary.json that `atomlearn select` wrote ({error})"
        ) from error
    if not saved or saved[0] != words[0] or len(saved) < 2:
        raise CommandError(f"--config {file} is not of `atomlearn {words[0]}`")
    own = len(words) > 1 and not words[1].startswith("-")
    data = words.pop(1) if own else saved[1]
    return [words[0], data, *saved[2:], *words[1:]]


@contextlib.contextmanager
def limited(memory: int | None, jobs: int | None) -> Iterator[None]:
    """Hold threads and memory within what was asked for."""
    with contextlib.ExitStack() as stack:
        if jobs is not None:
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(jobs))
        if memory is not None:
            stack.enter_context(_memory(memory))
        yield


@contextlib.contextmanager
def _memory(most: int) -> Iterator[None]:
    """Let allocations beyond the limit fail, which ends in a message."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def cost(began: float) -> str:
    """Return the seconds since then, and the most memory that this process had."""
    seconds = time.perf_counter() - began
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return f"{seconds:.1f} s, {peak / 2**20:,.0f} MB of memory at most"
