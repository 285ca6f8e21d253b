"""``atomlearn convert``: a data file in; a column store out."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from atomlearn.cli.arguments import reading_of
from atomlearn.storage.conversion.to_store import convert as convert_file
from atomlearn.storage.formats.format import MatrixColumns
from atomlearn.storage.formats.held import within
from atomlearn.storage.intake.read import read_as, table_columns
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.registry import format_of


def convert(options: argparse.Namespace) -> int:
    """Run the command; return 0."""
    began = time.perf_counter()
    reading = reading_of(options)
    with within(options.memory):
        opened, notes = _opened_columns(options.source, reading)
    excluded = [part.strip() for text in reading.drop for part in text.split(",") if part.strip()]
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
            *(f"  {note}" for note in notes),
            f"{Path(options.source).name}: {made.shape[0]:,} rows, {made.shape[1]:,} columns, "
            f"{made.layout} {made.dtype}, {made.n_bytes / 1e6:,.1f} MB of values, "
            f"{time.perf_counter() - began:.1f} s{resumed}\n{made.path}",
            file=sys.stderr,
            sep="\n",
        )
    return 0


def _opened_columns(source: str, reading: Reading) -> tuple[Any, list[str]]:
    """Return the columns of a table as ``select`` reads them; None without options for reading."""
    form = format_of(source)
    if form.cells is not None:
        rows, notes = table_columns(form, Path(source), reading)
        return rows, list(notes)
    has_options = (
        reading.text
        or reading.missing != "refuse"
        or reading.transpose
        or reading.dates
        or reading.schema
        or reading.names
        or reading.sheet
        or reading.layer
    )
    if not has_options:
        return None, []
    found = read_as(source, reading)
    opened = MatrixColumns(found.X, found.schema, found.y)
    return opened, list(found.notes)
