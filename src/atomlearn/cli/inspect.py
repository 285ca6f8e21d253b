"""``atomlearn inspect``: the columns of a file, and the features ``select`` makes of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from atomlearn.cli.arguments import reading_of
from atomlearn.core import write_text
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.messages import clipped
from atomlearn.storage.formats.table import Request
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.frame import transposed
from atomlearn.storage.intake.plans import plans_of
from atomlearn.storage.intake.read import read_as
from atomlearn.storage.intake.reading import Reading, schema_text
from atomlearn.storage.intake.registry import format_of

#: Maximum number of columns in the printed table.
MOST_LISTED = 60


def inspect(options: argparse.Namespace) -> int:
    """Run ``atomlearn inspect``: print the columns or write the schema; return 0."""
    path = Path(options.data)
    reading = reading_of(options)
    form = format_of(path)
    if form.cells is None:
        n_rows, plans = _matrix(form, path, reading)
    else:
        frame = form.cells(path, reading.text_form(), reading.sheet).frame()
        if reading.transpose:
            frame, _ = transposed(frame)
        frame.require(list(reading.named_roles().values()))
        n_rows = frame.n_rows
        plans = plans_of(frame, reading)
        if not options.json:
            print(f"{path.name}: {n_rows:,} rows, {len(frame.header):,} columns")
            print("\n".join([*(f"  {note}" for note in frame.notes), *_lines(plans)]))
            print("\n".join(_hints(path, plans, reading)))
    text = schema_text(path.name, n_rows, plans)
    if options.json:
        sys.stdout.write(text)
    if options.out is not None:
        write_text(options.out, text)
        print(f"{options.out}: edit `use`, then atomlearn select ... --schema {options.out}")
    return 0


def _matrix(form: Format, path: Path, reading: Reading) -> tuple[int, Sequence[ColumnPlan]]:
    """Print the contents of a numeric file; return its number of rows and its column plans."""
    table = read_as(path, replace(reading, missing="median"))
    n_rows, n_columns = table.X.shape
    names = [table.schema.name(column) for column in range(min(n_columns, 5))]
    known = "" if table.y is None else " with a target"
    print(f"{path.name}: {n_rows:,} rows{known}, {n_columns:,} columns, covariates included")
    print(f"  named {', '.join(names)}{', ...' if n_columns > 5 else ''}")
    for note in table.notes:
        print(f"  {note}")
    if table.variants is not None:
        gaps = form.table(path, Request(None, missing=True)).X.missing
        share = gaps.sum() / (n_rows * gaps.size)
        touched = np.count_nonzero(gaps)
        print(f"  {touched:,} of {gaps.size:,} variants lack genotypes, {share:.2%} of all")
    elif table.schema.columns:
        print(f"  {len(table.schema.columns)} of them with missing values")
    return n_rows, table.schema.columns


def _lines(plans: Sequence[ColumnPlan]) -> list[str]:
    """Return a table of the first columns: kind, use, missing values and distinct values."""
    shown = plans[:MOST_LISTED]
    more = len(plans) - MOST_LISTED
    width = min(max((len(plan.name) for plan in shown), default=6), 28)
    lines = [f"  {'column':<{width}}  {'is':<17} {'use':<10} {'missing':>7} {'values':>7}"]
    for plan in shown:
        tail = plan.why or (", ".join(plan.values[:5]) if plan.values else "")
        lines.append(
            f"  {clipped(plan.name, width):<{width}}  {plan.kind:<17} {plan.use:<10} "
            f"{plan.missing:>7,} {plan.distinct or '':>7}  {clipped(tail, 60)}".rstrip()
        )
    if more > 0:
        lines.append(f"  ... and {more:,} more columns; --out FILE lists all")
    return lines


def _hints(path: Path, plans: Sequence[ColumnPlan], reading: Reading) -> list[str]:
    """Return the lines that suggest the next ``atomlearn select`` command."""
    hints = [""]
    asked = f"--target {reading.target or 'NAME'}"
    if reading.role("time") and reading.role("event"):
        asked = f"--time {reading.role('time')} --event {reading.role('event')}"
    if reading.missing == "refuse" and any(plan.missing and plan.is_used for plan in plans):
        hints.append("values are missing: --missing median, indicator or drop")
        asked += " --missing median"
    return [*hints, f"next: atomlearn select {path} {asked} --out selected/"]
