"""``atomlearn convert``: a data file in; a column store out."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from atomlearn.cli.arguments import reading_of
from atomlearn.storage.conversion.to_store import convert_as


def convert(options: argparse.Namespace) -> int:
    """Run ``atomlearn convert``: convert a data file to a column store; return 0.

    ``options`` is the parsed command line.
    """
    began = time.perf_counter()
    reading = reading_of(options)
    design = convert_as(options.source, options.out, reading, options.dtype, options.memory)
    if not options.quiet:
        resumed = ", resumed" if design.resumed else ""
        print(
            *(f"  {note}" for note in design.notes),
            f"{Path(options.source).name}: {design.shape[0]:,} rows, {design.shape[1]:,} columns, "
            f"{design.layout} {design.dtype}, {design.n_bytes / 1e6:,.1f} MB of values, "
            f"{time.perf_counter() - began:.1f} s{resumed}\n{design.path}",
            file=sys.stderr,
            sep="\n",
        )
    return 0
