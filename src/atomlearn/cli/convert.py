"""``atomlearn convert``: a data file in; a column store out."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from atomlearn.cli.data_arguments import reading_options
from atomlearn.storage.conversion.to_store import convert as convert_file
from atomlearn.storage.formats.sources import MatrixColumns
from atomlearn.storage.intake.read import read


def convert(options: argparse.Namespace) -> int:
    """Run the command; return 0."""
    began = time.perf_counter()
    opened, excluded = (
        _understood(options),
        [part.strip() for text in options.drop for part in text.split(",") if part.strip()],
    )
    made = convert_file(
        options.source,
        options.out,
        target=options.target,
        exclude=excluded,
        opened=opened,
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


def _understood(options: argparse.Namespace) -> MatrixColumns | None:
    """Return the columns of a table as ``select`` reads it, where something of it is asked for."""
    asked = options.text or options.dates or options.schema or options.names
    if not asked and options.missing == "refuse":
        return None
    table = read(options.source, options.target, **reading_options(options))
    for note in () if options.quiet else table.notes:
        print(f"  {note}", file=sys.stderr)
    return MatrixColumns(table.X, table.schema.names, table.y)
