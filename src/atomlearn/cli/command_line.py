"""main: read the command line, run one command, turn faults into one line and an exit code."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence

from atomlearn.cli.arguments import build_parser
from atomlearn.cli.errors import CommandError
from atomlearn.cli.running import limited, with_config

#: EX_SOFTWARE of sysexits.h.
INTERNAL_ERROR = 70
#: What the system says of a place that takes nothing more, and what to do.
_PLACES = {
    errno.ENOSPC: "free some space, or give another place",
    errno.EDQUOT: "free some space, or give another place",
    errno.EFBIG: "raise the limit (ulimit -f), or give another place",
    errno.EROFS: "give a place that can be written to",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done; 2 something is wrong, said in one line with the remedy; 130 interrupted with Ctrl-C
    (``select`` still writes what it has); 70 a fault of atomlearn itself, also in one line.
    ATOMLEARN_DEBUG=1 shows tracebacks.
    """
    _never_choke()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        given = with_config(given)
        options = build_parser().parse_args(given)
    except SystemExit as stop:
        return int(stop.code or 0)
    except CommandError as error:
        print(f"atomlearn: error: {error}", file=sys.stderr)
        return 2
    options.given = given
    debugging = os.environ.get("ATOMLEARN_DEBUG", "") not in ("", "0")
    try:
        return _run(options)
    except KeyboardInterrupt:
        if debugging:
            raise
        left = " before there was a model; nothing written"
        if options.command == "convert":
            left = "; the same command goes on from here"
        print(f"atomlearn: interrupted{left}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (``| head``): nothing is left to say, nor to flush.
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
        return INTERNAL_ERROR


def _never_choke() -> None:
    """Have letters that the terminal cannot show written as their numbers (LC_ALL=C)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(options: argparse.Namespace) -> int:
    """Call the function of the command, which stands in the module of its name."""
    # Imported late: --help and --version should not wait for NumPy.
    module = importlib.import_module(f"atomlearn.cli.{options.command}")
    given = vars(options)
    with limited(given.get("memory_limit"), given.get("jobs")):
        code: int = getattr(module, options.command)(options)
    return code


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        remedy = _PLACES.get(error.errno or 0, "check the path and its permissions")
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror.lower()}; {remedy}"
    if isinstance(error, MemoryError):
        return (
            f"out of memory ({error}); raise --memory-limit where one was given, convert the data "
            "to a store (`atomlearn convert`), or select from fewer columns or rows"
        )
    message = " ".join(str(error).split())
    return message or type(error).__name__
