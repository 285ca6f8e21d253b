"""read_from_store: data larger than memory, by way of a column store in a temporary folder."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path

from atomlearn.storage.conversion.to_store import convert
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.registry import STORE
from atomlearn.storage.formats.table import DataTable, Schema
from atomlearn.storage.intake.matrices import read_matrix
from atomlearn.storage.intake.plans import made_of
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.streamed import TextRows
from atomlearn.storage.intake.targets import tidy
from atomlearn.storage.store.on_disk import OnDisk


def read_from_store(file: Path, form: Format, reading: Reading) -> DataTable:
    """Return the table of a file, whose X reads the store as it goes; the store goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="atomlearn-"))
    store = folder / "data.store"
    memory = max((reading.memory_limit or 0) // 4, 2**22)
    try:
        if form.rows is None:
            convert(file, store, target=reading.role("target"), memory=memory)
            table = read_matrix(STORE, store, replace(reading, target=None))
        else:
            rows = form.rows(file, reading)
            convert(file, store, memory=memory, opened=rows)
            table = _of_rows(rows, OnDisk(store))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # Files that are open are read on where their folder has gone.
    weakref.finalize(table.X, shutil.rmtree, folder, ignore_errors=True)
    note = f"larger than a third of the memory allowed: read from a column store in {folder}"
    return replace(table, source=str(file), notes=(*table.notes, note))


def _of_rows(rows: TextRows, design: OnDisk) -> DataTable:
    """Return the table of a text file that became a store."""
    reading, plans, kept = rows.reading, rows.plans, rows.kept
    names = tuple(rows.about.names or ())
    extras = {role: v for role, v in rows.roles.items() if role not in ("target", "id")}
    ids = rows.roles.get("id")
    y = rows.roles.get("target")
    return DataTable(
        design,
        None if y is None else tidy(y[kept], f"column {reading.role('target')!r} of {rows.path}"),
        Schema(len(names), names, columns=tuple(plans)),
        reading.role("target"),
        str(rows.path),
        groups=rows.groups,
        ids=None if ids is None else tuple(str(cell) for cell in ids[kept].tolist()),
        covariates=made_of(plans, reading.covariates),
        rows=kept,
        extras={role: values[kept] for role, values in extras.items()},
        notes=tuple(rows.notes),
    )
