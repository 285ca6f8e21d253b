"""main: read the command line, run one command, turn faults into one line and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence

from atomlearn.cli.arguments import build_parser


@contextlib.contextmanager
def limited(memory: int | None, jobs: int | None) -> Iterator[None]:
    """Limit threads and memory."""
    with contextlib.ExitStack() as stack:
        if jobs is not None:
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(jobs))
        if memory is not None:
            stack.enter_context(_memory(memory))
        yield


@contextlib.contextmanager
def _memory(most: int) -> Iterator[None]:
    """Make allocations beyond the limit fail, with an error message."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def memory() -> str:
    """Return the peak memory of this process, in words."""
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return f"{peak / 2**20:,.0f} MB of memory at most"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done; 2 an error, explained in one line with the remedy; 130 interrupted with Ctrl-C
    (``select`` still writes its last model); 70 a fault of atomlearn itself, also in one line.
    ATOMLEARN_DEBUG=1 shows tracebacks.
    """
    _escape_letters()
    began = time.perf_counter()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = build_parser().parse_args(given)
    except SystemExit as stop:
        return int(stop.code or 0)
    options.given = given
    options.began = began
    debugging = os.environ.get("ATOMLEARN_DEBUG", "") not in ("", "0")
    try:
        return _run(options)
    except KeyboardInterrupt:
        if debugging:
            raise
        left = {
            "convert": "; the same command resumes here",
            "select": " before anything was fitted; nothing written",
        }
        told = left.get(options.command, "; nothing written")
        print(f"atomlearn: interrupted{told}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output has ended (``| head``): there is nothing to print or flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, OSError, MemoryError) as error:
        if debugging:
            raise
        print(f"atomlearn: error: {_one_line(error)}", file=sys.stderr)
        return 2
    except Exception as error:
        if debugging:
            raise
        message = " ".join(str(error).split())
        print(
            f"atomlearn: internal error: {type(error).__name__}: {message}; this is a fault of "
            "atomlearn. Please report it with the traceback that ATOMLEARN_DEBUG=1 shows",
            file=sys.stderr,
        )
        return os.EX_SOFTWARE


def _escape_letters() -> None:
    """Print letters that the terminal cannot show as their numbers (LC_ALL=C)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(options: argparse.Namespace) -> int:
    """Call the function of the command, in the module of the same name."""
    # Imported late: --help and --version should not wait for NumPy.
    module = importlib.import_module(f"atomlearn.cli.{options.command}")
    given = vars(options)
    with limited(given.get("memory_limit"), given.get("jobs")):
        code: int = getattr(module, options.command)(options)
    return code


def _one_line(error: BaseException) -> str:
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        message = f"{where}{error.strerror.lower()}; check the path, its permissions and free space"
    if isinstance(error, MemoryError):
        message = (
            f"out of memory ({error}); raise --memory-limit if one was given, convert the data "
            "to a store (`atomlearn convert`), or select from fewer columns or rows"
        )
    return " ".join(message.split()) or type(error).__name__
