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
    store = convert_as(options.source, options.out, reading, options.dtype, options.memory)
    if not options.quiet:
        resumed = ", resumed" if store.resumed else ""
        print(
            *(f"  {note}" for note in store.notes),
            f"{Path(options.source).name}: {store.shape[0]:,} rows, {store.shape[1]:,} columns, "
            f"{store.layout} {store.dtype}, {store.n_bytes / 1e6:,.1f} MB of values, "
            f"{time.perf_counter() - began:.1f} s{resumed}\n{store.path}",
            file=sys.stderr,
            sep="\n",
        )
    return 0
