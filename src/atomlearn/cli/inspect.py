"""``atomlearn inspect``: what the columns of a file are, and what ``select`` makes of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from atomlearn.cli.data_arguments import reading_options
from atomlearn.reports.atomic_write import write_text
from atomlearn.storage.formats.messages import shortened
from atomlearn.storage.formats.registry import format_of
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.frame import transposed
from atomlearn.storage.intake.plans import plans_of
from atomlearn.storage.intake.read import read
from atomlearn.storage.intake.reading import Reading, schema_text

#: Columns that are listed one by one; of more, kinds are counted.
MOST_LISTED = 60


def inspect(options: argparse.Namespace) -> int:
    """Run the command; return 0."""
    path = Path(options.data)
    reading = Reading(target=options.target, **reading_options(options))
    form = format_of(path)
    if form.cells is None:
        return _matrix(path, options)
    frame = form.cells(path, reading.form, reading.sheet).frame()
    if reading.transpose:
        frame, _ = transposed(frame)
    wanted = list(reading.named_roles().values())
    frame.require(wanted)
    plans = [plan if plan.missing else _counted(frame, plan) for plan in plans_of(frame, reading)]
    text = schema_text(path.name, frame.n_rows, plans)
    if options.json:
        sys.stdout.write(text)
    else:
        print(f"{path.name}: {frame.n_rows:,} rows, {len(frame.header):,} columns")
        for note in frame.notes:
            print(f"  {note}")
        print("\n".join(_lines(plans)))
        print("\n".join(_hints(path, plans, reading, frame.n_rows)))
    if options.out is not None:
        write_text(options.out, text)
        print(f"{options.out}: edit `use`, then atomlearn select ... --schema {options.out}")
    return 0


def _counted(frame: Any, plan: ColumnPlan) -> ColumnPlan:
    return replace(plan, missing=int(frame.missing(plan.name).sum()))


def _matrix(path: Path, options: argparse.Namespace) -> int:
    given = reading_options(options) | {"missing": "median"}
    table = read(path, options.target, **given)
    n_rows, n_columns = table.X.shape
    names = [table.schema.name(column) for column in range(min(n_columns, 5))]
    known = "" if table.y is None else " with a target"
    print(f"{path.name}: {n_rows:,} rows{known}, {n_columns:,} columns of numbers")
    print(f"  named {', '.join(names)}{', ...' if n_columns > 5 else ''}")
    for note in table.notes:
        print(f"  {note}")
    if table.schema.columns:
        print(f"  {len(table.schema.columns)} of them with missing values")
    if options.out is not None:
        write_text(options.out, schema_text(path.name, n_rows, table.schema.columns))
    return 0


def _lines(plans: Sequence[ColumnPlan]) -> list[str]:
    """Return the table of columns, or of kinds where they are many."""
    if len(plans) > MOST_LISTED:
        lines = []
        for kind, use in dict.fromkeys((plan.kind, plan.use) for plan in plans):
            mine = [plan.name for plan in plans if (plan.kind, plan.use) == (kind, use)]
            shown = ", ".join(shortened(name, 20) for name in mine[:4])
            lines.append(f"  {len(mine):>7,}  {kind:<17} {use:<10} {shown}")
        return lines
    width = min(max((len(plan.name) for plan in plans), default=6), 28)
    lines = [f"  {'column':<{width}}  {'is':<17} {'use':<10} {'missing':>7} {'values':>7}"]
    for plan in plans:
        tail = plan.why or (", ".join(plan.values[:5]) if plan.values else "")
        lines.append(
            f"  {shortened(plan.name, width):<{width}}  {plan.kind:<17} {plan.use:<10} "
            f"{plan.missing:>7,} {plan.distinct or '':>7}  {shortened(tail, 60)}".rstrip()
        )
    return lines


def _hints(path: Path, plans: Sequence[ColumnPlan], reading: Reading, n_rows: int) -> list[str]:
    """Return what could be typed next."""
    hints = []
    refused = reading.missing == "refuse"
    missing = refused and any(plan.missing and plan.is_used for plan in plans)
    if missing:
        hints.append("values are missing: --missing median, indicator or drop")
    numeric = [plan for plan in plans if plan.use == "number"]
    first, named = plans[0], reading.named_roles()
    alike = len(numeric) == len(plans) - 1 > 3 and not named
    if first.kind == "identifier" and alike and n_rows > 5 * len(plans):
        hints.append(f"a row for each {first.name or 'name'}? --transpose, if samples are columns")
    asked = f"--target {reading.target or 'NAME'}"
    if reading.role("time") and reading.role("event"):
        asked = f"--time {reading.role('time')} --event {reading.role('event')}"
    asked += " --missing median" if missing else ""
    hints.append(f"next: atomlearn select {path} {asked} --out selected/")
    return ["", *hints]
