"""``atomlearn convert``: a data file in; a column store out."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from atomlearn.storage.conversion.to_store import convert as convert_file


def convert(options: argparse.Namespace) -> int:
    """Run the command; return 0."""
    began = time.perf_counter()
    made = convert_file(
        options.source,
        options.out,
        target=options.target,
        exclude=tuple(options.exclude or ()),
        dtype=options.dtype,
        memory=options.memory,
    )
    if not options.quiet:
        resumed = ", resumed" if made.resumed else ""
        print(
            f"{Path(options.source).name}: {made.shape[0]:,} rows, {made.shape[1]:,} columns, "
            f"{made.layout} {made.dtype}, {made.n_bytes / 1e6:,.1f} MB of values, "
            f"{time.perf_counter() - began:.1f} s{resumed}\n{made.path}",
            file=sys.stderr,
        )
    return 0
