"""``atomlearn convert``: a data file in; a column store out."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from atomlearn.cli.data_arguments import reading_options
from atomlearn.storage.conversion.to_store import convert as convert_file
from atomlearn.storage.formats.held import within
from atomlearn.storage.formats.registry import format_of
from atomlearn.storage.formats.sources import MatrixColumns
from atomlearn.storage.intake.read import read
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.streamed import TableRows


def convert(options: argparse.Namespace) -> int:
    """Run the command; return 0."""
    began = time.perf_counter()
    excluded = [part.strip() for text in options.drop for part in text.split(",") if part.strip()]
    with within(options.memory):
        opened = _understood(options)
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


def _understood(options: argparse.Namespace) -> Any:
    """Return the columns of a table as ``select`` reads it, a piece at a time where that does."""
    given = reading_options(options)
    form = format_of(options.source)
    whole = options.text or options.missing == "drop" or options.transpose
    if form.cells is not None and not whole:
        reading = Reading(target=options.target, **given)
        table = form.cells(Path(options.source), reading.text_form(), reading.sheet)
        rows = TableRows(table, reading)
        _tell(rows.notes, options)
        return rows
    if not (whole or options.dates or options.schema or options.names or options.sheet) and (
        options.missing == "refuse"
    ):
        return None
    found = read(options.source, options.target, **given)
    _tell(found.notes, options)
    return MatrixColumns(found.X, found.schema.names, found.y, found.schema.columns)


def _tell(notes: Sequence[str], options: argparse.Namespace) -> None:
    for note in () if options.quiet else notes:
        print(f"  {note}", file=sys.stderr)
