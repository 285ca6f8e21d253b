"""``atomlearn inspect``: the columns of a file, and the features ``select`` makes of them."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from atomlearn._support import write_text
from atomlearn.cli.arguments import TargetOptions, build_parser, reading_of
from atomlearn.cli.settings import read_settings
from atomlearn.cli.source import target_from
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.messages import clipped, typed
from atomlearn.storage.formats.table import DataTable, Observations, Request
from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.columns import INTAKE, ColumnPlan
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.kinds import described, unknown_words
from atomlearn.storage.intake.plans import faults_of, plans_of, require, spread_out
from atomlearn.storage.intake.read import framed, read_as, refuse_layers
from atomlearn.storage.intake.reading import Reading, schema_text
from atomlearn.storage.intake.registry import format_of
from atomlearn.storage.intake.tables import encoded_table
from atomlearn.storage.intake.written import days_of

#: Maximum number of columns in the printed table.
MOST_LISTED = 60
#: Maximum number of labels of a column of obs whose counts are printed.
MOST_CLASSES = 40
#: Number of different dates from which rows in their order may be a series.
LEAST_DATES = 10
#: Options of ``inspect`` that are not passed on to the ``select`` command.
_OF_INSPECT = ("command", "data", "out", "json", "given", "began")
_KINDS = (Reading, TextForm, TargetOptions)
_DEFAULTS = {each.name: each.default for kind in _KINDS for each in fields(kind)}


def inspect(options: argparse.Namespace) -> int:
    """Run ``atomlearn inspect``: print the columns or write the schema; return 0.

    The printed command is tried as far as its target: an error of ``select`` is one of ``inspect``.
    ``options`` is the parsed command line.
    """
    path = Path(options.data)
    reading = reading_of(options)
    file_format = format_of(path)
    refuse_layers(file_format, path, reading)
    proposed_options = list[str]()
    plans: Sequence[ColumnPlan]
    if file_format.cells is None:
        table = read_as(path, replace(reading, missing="median"))
        plans = table.schema.columns
        n_rows = table.X.shape[0]
        lines = _matrix(file_format, path, table)
    else:
        frame, ids = framed(file_format.cells(path, reading.text_form(), reading.sheet), reading)
        reading = spread_out(frame, reading)
        require(frame, reading)
        plans = plans_of(frame, reading)
        n_rows = frame.n_rows
        faults = faults_of(frame, plans, reading)
        proposed_options = [word for _, option in faults for word in shlex.split(option)]
        # Options that turn further cells into missing values: the printed lines describe the file
        # as it is, and the schema the columns after these options.
        reading = reading_of(_parsed(_command(options, proposed_options, options.schema, False)))
        frame = frame.tidied(reading.text_form())
        proposed_plans = plans_of(frame, reading)
        gaps = _gaps(proposed_plans, reading)
        proposed_options += ["--missing", "median"] if gaps else []
        hints = [*gaps, *_hints(frame, plans, faults)]
        lines = [f"{path.name}: {n_rows:,} rows, {len(frame.header):,} columns"]
        lines += [*(f"  {note}" for note in frame.notes), *_lines(plans), "", *hints]
        plans = proposed_plans
    text = schema_text(path.name, n_rows, plans)
    if options.out is not None:
        write_text(options.out, text)
        lines.append(f"{options.out}: edit `use`, then type the next line")
    if options.json:
        sys.stdout.write(text)
        return 0
    print("\n".join(lines))
    has_target = file_format.cells is None and table.y is not None
    command = _command(options, proposed_options, options.out or options.schema, has_target)
    # NAME stands for a target that the user has to choose; then the task is not known.
    if "NAME" not in command:
        chosen = _parsed(command)
        if file_format.cells is not None:
            table = encoded_table(frame, reading_of(chosen), ids)
        print(_task(table, chosen))
    print(f"next: {shlex.join(command)}")
    return 0


def _parsed(command: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command of ``atomlearn``, given as its words."""
    return build_parser().parse_args(command[1:])


def _command(
    options: argparse.Namespace, choices: Sequence[str], schema: str | None, has_target: bool
) -> list[str]:
    """Return the words of the ``atomlearn select`` that reads the file as it was inspected.

    ``choices`` are further options that resolve faults of the file, ``schema`` is the schema file
    or None, and ``has_target`` is whether the file has a target that needs no name.
    """
    # Each option that was set is repeated; switches have a form with --no-.
    values = {name: value for name, value in vars(options).items() if name not in _OF_INSPECT}
    values["schema"] = schema
    words = ["atomlearn", "select", options.data]
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if value is None or value == _DEFAULTS.get(name, False):
            continue
        if isinstance(value, bool):
            words.append(option if value else f"--no-{option[2:]}")
            continue
        for entry in value if isinstance(value, list) else [value]:
            words += shlex.split(typed(option, [str(entry)]))
    options_set = {name for name, value in values.items() if value is not None}
    if not has_target and options_set.isdisjoint({"target", "time", "pheno"}):
        words += ["--target", "NAME"]
    return [*words, *choices, "--out", "selected/"]


def _task(table: DataTable, options: argparse.Namespace) -> str:
    """Return a line on the model that ``select`` would fit, and on an alternative.

    ``table`` is the file as it was read. ``options`` is the parsed command line.
    """
    settings = read_settings(options)
    target = target_from(table, options, settings)
    settings.loss_for(target.task)  # an error if --loss does not fit the task
    reason = f", as {target.guessed}" if target.guessed else ""
    labels = target.labels
    if target.is_survival:
        return f"task: survival, {target.name}{target.event_counts}"
    if labels is None:
        is_discrete = np.unique(target.values).size <= INTAKE.most_values
        alternative = "; --task classification takes each value for a class" if is_discrete else ""
        return f"task: regression{reason}{alternative}"
    if len(labels) == 2:
        return f"task: classification, {clipped(labels[1])!r} against {clipped(labels[0])!r}"
    is_numeric = table.y is not None and table.y.dtype.kind in "iuf"
    alternative = "; --task regression predicts it as a number" if is_numeric else ""
    return f"task: classification, {len(labels)} classes{reason}{alternative}"


def _matrix(form: Format, path: Path, table: DataTable) -> list[str]:
    """Return lines on the contents of a file of numbers.

    ``form`` is its format, and ``table`` the file as it was read. ``path`` is the path of the file.
    """
    n_rows, n_columns = table.X.shape
    names = [table.schema.name(column) for column in range(min(n_columns, 5))]
    target_note = "" if table.y is None else " with a target"
    lines = [
        f"{path.name}: {n_rows:,} rows{target_note}, {n_columns:,} columns, covariates included"
    ]
    lines.append(f"  named {', '.join(names)}{', ...' if n_columns > 5 else ''}")
    lines += [f"  {note}" for note in table.notes]
    if table.variants is not None:
        is_missing = form.table(path, Request(None, missing=True)).X.missing
        share = is_missing.sum() / (n_rows * is_missing.size)
        n_with_gaps = np.count_nonzero(is_missing)
        lines.append(
            f"  {n_with_gaps:,} of {is_missing.size:,} variants lack genotypes, {share:.2%} of all"
        )
    elif n_with_gaps := sum(plan.missing > 0 for plan in table.schema.columns):
        lines.append(f"  {n_with_gaps:,} of them with missing values")
    if form.rows is not None:
        lines += _observations(form.rows(path), path)
    return lines


def _observations(rows: Observations, path: Path) -> list[str]:
    """Return a table of the columns of obs, in lines: kind, missing values and class sizes.

    ``rows`` are the annotations of the cells in an AnnData file. ``path`` is the path of the file.
    """
    if not rows.header:
        return ["  no columns describe its rows: give the target by --pheno FILE"]
    frame = Frame(path, {name: rows.cells(name) for name in rows.header}, len(rows.names))
    width = min(max(map(len, rows.header)), 28)
    lines = ["", f"  {'column of obs':<{max(width, 13)}}  {'is':<10} {'missing':>7} {'values':>7}"]
    # A range for numbers, the counts of the labels for text.
    for plan in described(frame, rows.header[:MOST_LISTED]):
        cells = frame.columns[plan.name][~frame.missing(plan.name)]
        is_text = frame.is_text(plan.name)
        tail = f"{cells.min():g} to {cells.max():g}" if cells.size and not is_text else ""
        counts = Counter(cells.tolist()).most_common() if is_text else []
        if len(counts) <= MOST_CLASSES:
            tail = tail or ", ".join(f"{label} {count:,}" for label, count in counts)
        lines.append(
            f"  {clipped(plan.name, width):<{max(width, 13)}}  {plan.kind:<10} {plan.missing:>7,} "
            f"{len(counts) or plan.distinct or '':>7}  {clipped(tail, 400)}".rstrip()
        )
    return [*lines, ""]


def _lines(plans: Sequence[ColumnPlan]) -> list[str]:
    """Return a table of the first columns, in lines: kind, use, missing and distinct values.

    ``plans`` are the encoding plans of the columns.
    """
    listed = plans[:MOST_LISTED]
    n_more = len(plans) - MOST_LISTED
    width = min(max((len(plan.name) for plan in listed), default=6), 28)
    lines = [f"  {'column':<{width}}  {'is':<17} {'use':<10} {'missing':>7} {'values':>7}"]
    for plan in listed:
        tail = plan.why or (", ".join(plan.values[:5]) if plan.values else "")
        lines.append(
            f"  {clipped(plan.name, width):<{width}}  {plan.kind:<17} {plan.use:<10} "
            f"{plan.missing:>7,} {plan.distinct or '':>7}  {clipped(tail, 60)}".rstrip()
        )
    if n_more > 0:
        lines.append(f"  ... and {n_more:,} more columns; --out FILE lists all")
    return lines


def _gaps(plans: Sequence[ColumnPlan], reading: Reading) -> list[str]:
    """Return a line on the missing values that ``select`` would refuse, if there are any.

    ``plans`` are those of the columns, ``reading`` has the option --missing.
    """
    plans_with_gaps = [
        plan for plan in plans if plan.missing and plan.is_used and plan.fill is None
    ]
    if not plans_with_gaps or reading.missing != "refuse":
        return []
    count = sum(plan.missing for plan in plans_with_gaps)
    remedies = "--missing median, indicator or drop"
    return [f"{count:,} values are missing, in {len(plans_with_gaps):,} columns: {remedies}"]


def _hints(
    frame: Frame, plans: Sequence[ColumnPlan], faults: Sequence[tuple[str, str]]
) -> list[str]:
    """Return lines on choices of the user: faults of the file, unknown labels, and a series.

    ``faults`` are pairs of a fault and the option that resolves it, or "". ``frame`` are the cells
    of the table and ``plans`` the encoding plans of the columns.
    """
    lines = [
        f"{fault}. The next line has {option}" if option else fault for fault, option in faults
    ]
    for plan in plans:
        words = unknown_words(plan.values) if plan.use == "category" else []
        if words:
            text = f"{words[0]!r} of {plan.name!r} is a level; {typed('--na', words)} makes it"
            lines.append(f"{text} a missing value")
    uses = {plan.use for plan in plans}
    return lines if uses & {"order", "rows_of", "split"} else [*lines, *_series(frame, plans)]


def _series(frame: Frame, plans: Sequence[ColumnPlan]) -> list[str]:
    """Return a hint if the rows are in the order of a column of dates, else an empty list.

    ``frame`` are the cells of the table and ``plans`` the encoding plans of the columns.
    """
    for plan in plans:
        days = days_of(frame.cells(plan.name).tolist()) if plan.kind == "date" else None
        if days is None or plan.missing or plan.distinct < LEAST_DATES:
            continue
        steps = np.diff(days)
        if (steps >= 0).all() or (steps <= 0).all():
            option = typed("--order", [plan.name])
            text = f"the rows are in the order of {plan.name!r}: if they are a series, {option}"
            return [f"{text} holds its end out, not random rows"]
    return []
