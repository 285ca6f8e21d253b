"""main: read the command line, run one command, turn faults into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from atomlearn.cli.arguments import build_parser
from atomlearn.cli.errors import CommandError

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130

_NO_MODEL = "interrupted before there was a model; nothing written"
_INTERRUPTED = {"convert": "interrupted; the same command goes on from here"}


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
        print(f"atomlearn: {_INTERRUPTED.get(options.command, _NO_MODEL)}", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (``| head``): nothing is left to say, nor to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (CommandError, ValueError, TypeError, OSError, MemoryError) as error:
        if debugging:
            raise
        print(f"atomlearn: error: {_one_line(error)}", file=sys.stderr)
        return EXIT_ERROR


def _run(options: object) -> int:
    # Imported late: --help and --version should not wait for NumPy.
    command = options.command  # type: ignore[attr-defined]
    if command == "select":
        from atomlearn.cli.select import select

        return select(options)  # type: ignore[arg-type]
    if command == "predict":
        from atomlearn.cli.predict import predict

        return predict(options)  # type: ignore[arg-type]
    if command == "convert":
        from atomlearn.cli.convert import convert

        return convert(options)  # type: ignore[arg-type]
    from atomlearn.cli.demo import demo

    return demo(options)  # type: ignore[arg-type]


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror.lower()}; check the path and its permissions"
    if isinstance(error, MemoryError):
        return f"out of memory ({error}); select from fewer columns, or from fewer rows"
    message = " ".join(str(error).split())
    return message or type(error).__name__
