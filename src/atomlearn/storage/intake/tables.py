"""encoded_table: interpret the columns of a frame, join other files, and encode it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.table import DataTable, Schema, tidy_target
from atomlearn.storage.intake.columns import known_rows
from atomlearn.storage.intake.encode import completed, encode_columns
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.gaps import gaps_in
from atomlearn.storage.intake.join import NamedRows, covariates_in, frame_of_samples, phenotype
from atomlearn.storage.intake.kinds import described
from atomlearn.storage.intake.plans import (
    left_out,
    made_of,
    plans_of,
    refuse,
    require,
    spread_out,
    with_references,
    with_rows_of,
)
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.written import numbers_written


def encoded_table(frame: Frame, reading: Reading, ids: Sequence[str] | None) -> DataTable:
    """Return a table of numbers for a frame of cells.

    The steps are:

    1. Plan how each column is encoded.
    2. Find the names of the rows.
    3. Join the files of covariates and of targets, if there are any.
    4. Take out the target and the columns of roles, such as weights.
    5. Leave out rows without a target and, if requested, rows with missing values.
    6. Encode the other columns as X.

    Parameters
    ----------
    frame : Frame
        The cells of the file, by column.
    reading : Reading
        The choices of the user.
    ids : sequence of str, optional
        Names of the rows; None: a column of the frame has them, if any.

    Returns
    -------
    DataTable
    """
    reading = spread_out(frame, reading)
    require(frame, reading)
    notes = list(frame.notes)
    reading, plans = with_rows_of(frame, reading, plans_of(frame, reading))
    # Names of the rows, by which other files are joined.
    id_column = reading.role("id")
    id_columns = [plan.name for plan in plans if plan.kind == "identifier"]
    if ids is None and (id_column or id_columns):
        ids = [str(cell) for cell in frame.cells(id_column or id_columns[0]).tolist()]
    samples = None if ids is None else NamedRows(ids, columns=frame.header)
    if reading.covar is not None:
        joined = frame_of_samples(reading.covar, samples, frame.path, notes, reading.form)
        added = covariates_in(joined, reading, notes)
        if repeated := [name for name in added if name in frame.columns]:
            raise ValueError(f"{reading.covar} and {frame.path} both have a column {repeated[0]!r}")
        frame = replace(frame, columns=frame.columns | {key: joined.columns[key] for key in added})
        plans += described(frame, added)
        reading = replace(reading, covariates=tuple({*reading.covariates, *added}))
    # The target y and its name, and the vectors of other roles.
    roles = reading.named_roles()
    name = roles.pop("target", None)
    y = None
    roles.pop("id", None)
    if reading.pheno is not None:
        name, y = phenotype(reading, samples, frame.path, notes)
    elif name is not None:
        y = _values(frame, name)
    extras = {role: _values(frame, column) for role, column in roles.items()}
    kept_rows, remarks = known_rows(y, name, extras, frame.n_rows)
    frame = frame.rows(kept_rows)
    fixed = plans  # without imputed values
    # ``full`` marks the rows to keep: those without missing values if others are to be left out.
    plans, full = completed(frame, plans, reading.missing)
    if not full.all():
        remarks.append(f"{int((~full).sum())} rows with missing values left out (--missing drop)")
        if not full.any():
            raise ValueError(f"{frame.path}: every row lacks a value; type --missing median")
        kept_rows = kept_rows[full]
        frame = frame.rows(np.flatnonzero(full))
    refuse(frame, plans, reading)
    plans, compared = with_references(frame, plans, reading)
    encoded = encode_columns(frame, plans)
    meanings = reading.form.meanings
    return DataTable(
        encoded.X,
        None if y is None else tidy_target(y[kept_rows], f"column {name!r} of {frame.path}"),
        Schema(
            len(encoded.names), tuple(encoded.names), columns=tuple(encoded.plans), origin=meanings
        ),
        name,
        str(frame.path),
        groups=encoded.groups,
        ids=None if ids is None else tuple(ids[row] for row in kept_rows.tolist()),
        covariates=made_of(encoded.plans, reading.covariates),
        rows=kept_rows,
        extras={role: values[kept_rows] for role, values in extras.items()},
        notes=(*notes, *remarks, *compared, *left_out(plans)),
        gaps=gaps_in(frame, fixed, encoded),
    )


def _values(frame: Frame, name: str) -> NDArray[Any]:
    """Return the cells (n_rows,) of the column ``name`` of ``frame``, the target or another role.

    Text such as "60 kg" becomes numbers if all cells of the column are such text.
    """
    cells = frame.columns[name]
    written = numbers_written(cells.tolist()) if frame.is_text(name) else None
    return cells if written is None or written.strays else written.values
