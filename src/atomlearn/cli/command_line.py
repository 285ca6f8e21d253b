"""main: read the command line, run one command, turn faults into one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from atomlearn.cli.arguments import build_parser
from atomlearn.cli.errors import CommandError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done; 2 something is wrong, said in one line with the remedy; 130 interrupted with Ctrl-C
    (``select`` still writes what it has). ATOMLEARN_DEBUG=1 shows tracebacks.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = build_parser().parse_args(given)
    except SystemExit as stop:
        return int(stop.code or 0)
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
    except (CommandError, ValueError, TypeError, OSError, MemoryError) as error:
        if debugging:
            raise
        print(f"atomlearn: error: {_one_line(error)}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    """Call the function of the command, which stands in the module of its name."""
    # Imported late: --help and --version should not wait for NumPy.
    module = importlib.import_module(f"atomlearn.cli.{options.command}")
    code: int = getattr(module, options.command)(options)
    return code


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror.lower()}; check the path and its permissions"
    if isinstance(error, MemoryError):
        return f"out of memory ({error}); select from fewer columns, or from fewer rows"
    message = " ".join(str(error).split())
    return message or type(error).__name__
