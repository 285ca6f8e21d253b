"""main: parse the command line, run one command, and turn errors into one line and an exit code."""

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
    """Limit the threads (``jobs``) and the memory (bytes) of the block; None means no limit."""
    with contextlib.ExitStack() as stack:
        if jobs is not None:
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(jobs))
        if memory is not None:
            stack.enter_context(_memory(memory))
        yield


@contextlib.contextmanager
def _memory(n_bytes: int) -> Iterator[None]:
    """Limit the data segment of the process to ``n_bytes`` bytes (RLIMIT_DATA).

    Larger allocations in the block raise MemoryError.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def memory() -> str:
    """Return the peak resident memory of this process, in words."""
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return f"{peak / 2**20:,.0f} MB of memory at most"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    The exit code is 0 for success; 2 for an error, which is explained in one line with a remedy;
    130 after Ctrl-C (``select`` still writes its last model); and 70 for an internal error of
    atomlearn, also reported in one line. The environment variable ATOMLEARN_DEBUG=1 shows
    tracebacks. ``arguments`` are the words of the command line, None for those of the process.
    """
    _escape_letters()
    began = time.perf_counter()
    given_words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = build_parser().parse_args(given_words)
    except SystemExit as stop:
        return int(stop.code or 0)
    options.given = given_words
    options.began = began
    debugging = os.environ.get("ATOMLEARN_DEBUG", "") not in ("", "0")
    try:
        return _run(options)
    except KeyboardInterrupt:
        if debugging:
            raise
        consequences = {
            "convert": "; the same command resumes here",
            "select": " before anything was fitted; nothing written",
        }
        remainder = consequences.get(options.command, "; nothing written")
        print(f"atomlearn: interrupted{remainder}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The process that reads the output has ended, as in ``| head``. Redirecting stdout avoids a
        # second BrokenPipeError when Python flushes it at exit.
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
    """Make stdout and stderr escape characters that the terminal cannot encode.

    With LC_ALL=C, for example, they are printed as backslash escapes instead of raising
    UnicodeEncodeError.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(options: argparse.Namespace) -> int:
    """Call the function of the command, in the module of the same name; return its exit code.

    Threads and memory are limited by --jobs and --memory-limit. ``options`` is the parsed command
    line.
    """
    # The import is deferred so that --help and --version do not have to import NumPy.
    module = importlib.import_module(f"atomlearn.cli.{options.command}")
    values = vars(options)
    with limited(values.get("memory_limit"), values.get("jobs")):
        code: int = getattr(module, options.command)(options)
    return code


def _one_line(error: BaseException) -> str:
    """Return the error message on one line, with a remedy for system and memory errors."""
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
