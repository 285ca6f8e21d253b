"""Frames from tables with types of their own: Parquet, Feather, Arrow, Excel, data frames."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.understood import understood
from atomlearn.storage.intake.frame import Frame, as_numbers, distinct_names, frame_of_columns
from atomlearn.storage.intake.kinds import is_code, is_id_name
from atomlearn.storage.intake.problems import listed

Labels = frozenset[str]


def read_parquet(path: Path, labels: Labels = frozenset()) -> Frame:
    """Return the frame of a Parquet file; ``labels`` : see ``TextForm``."""
    pq = imported("pyarrow.parquet", "pyarrow", path)
    with understood(path, "Parquet file", "; copy it afresh"):
        table = pq.ParquetFile(path).read()
    return _arrow_frame(path, table, labels)


def read_arrow(path: Path, labels: Labels = frozenset()) -> Frame:
    """Return the frame of an Arrow or Feather file (IPC, as a file or as a stream)."""
    feather, ipc = (imported(f"pyarrow.{module}", "pyarrow", path) for module in ("feather", "ipc"))
    with understood(path, "Arrow file", "; copy it afresh"):
        try:
            table = feather.read_table(path)
        except Exception:  # it is a stream, or damaged
            with path.open("rb") as stream:
                table = ipc.open_stream(stream).read_all()
    return _arrow_frame(path, table, labels)


def _arrow_frame(path: Path, table: Any, labels: Labels) -> Frame:
    names, notes = distinct_names(table.schema.names)
    names = plain_names(names)
    columns = {
        name: arrow_column(table.column(place), f"column {name!r} of {path}", name, labels)
        for place, name in enumerate(names)
    }
    if not columns or table.num_rows == 0:
        raise ValueError(f"{path} holds no data; expected columns with one row a sample")
    return frame_of_columns(path, columns, notes)


def plain_names(names: list[str]) -> list[str]:
    """Return names of columns; what pandas stores as its index is one, and told as an index."""
    return ["index" if name.startswith("__index_level_") else name for name in names]


def arrow_column(column: Any, where: str, name: str, labels: Labels) -> NDArray[Any]:
    """Return a column of an Arrow table as numbers, or as text; ``labels`` stay text."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        return _objects(column.to_pylist(), name, labels)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        if types.is_boolean(kind):
            column = column.cast("int8")
        return np.asarray(column.cast("float64", safe=False).to_numpy(), dtype=np.float64)
    if types.is_decimal(kind):
        return np.asarray(column.cast("float64").to_numpy(), dtype=np.float64)
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_nested(kind):
        raise ValueError(f"{where} holds {kind}, several values a cell; leave it out (--drop)")
    return _objects(column.to_pylist(), name, labels)


def _objects(cells: list[Any], name: str, labels: Labels = frozenset()) -> NDArray[Any]:
    """Return cells of any type as text, dates as YYYY-MM-DD; numbers where all are."""
    words = [_text(cell) for cell in cells]
    found = np.array(words, dtype=object)
    if name in labels or (is_id_name(name) and any(map(is_code, words))):
        return found
    return as_numbers(found)


def _text(cell: Any) -> str:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell:
        return ""
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ") if cell.time() != datetime.time() else str(cell.date())
    if isinstance(cell, bytes):
        return cell.decode("utf-8", errors="replace")
    if isinstance(cell, bool):
        return str(int(cell))
    return str(cell).strip()


def read_excel(path: Path, sheet: str | None = None, labels: Labels = frozenset()) -> Frame:
    """Return the frame of a sheet of a workbook, the first one by default."""
    openpyxl = imported("openpyxl", "excel", path)
    with understood(path, "Excel file", "; copy it afresh"):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        if sheet is not None and sheet not in book.sheetnames:
            shown = ", ".join(repr(name) for name in book.sheetnames[:8])
            raise ValueError(f"{path} has no sheet {sheet!r}; there are {shown}")
        rows = [list(row) for row in book[sheet or book.sheetnames[0]].iter_rows(values_only=True)]
        others = list(book.sheetnames[1:]) if sheet is None else []
    finally:
        book.close()
    rows = [row for row in rows if any(cell is not None for cell in row)]
    if len(rows) < 2:
        raise ValueError(f"the sheet of {path} holds no table: a header and rows; give --sheet")
    width = max(place for row in rows for place, cell in enumerate(row, 1) if cell is not None)
    names, notes = distinct_names([_text(cell) for cell in rows[0][:width]])
    columns = {
        name: _objects([row[place] for row in rows[1:]], name, labels)
        for place, name in enumerate(names)
    }
    if others:
        shown = listed(others)
        notes.append(f"the first of {len(others) + 1} sheets was read (--sheet NAME: {shown})")
    return frame_of_columns(path, columns, notes)


def frame_of(table: Any, path: Path = Path("the table")) -> Frame:
    """Return the frame of a data frame of pandas or polars, or of a mapping of columns."""
    names = list(table) if isinstance(table, Mapping) else [str(name) for name in table.columns]
    columns = {}
    for name in names:
        values = np.asarray(table[name])
        numeric = values.dtype.kind in "biuf"
        cells = values.astype(np.float64) if numeric else _objects(list(values.tolist()), name)
        if values.dtype.kind == "M":
            days = values.astype("datetime64[s]").astype(str)
            cells = np.array(["" if day == "NaT" else day for day in days], dtype=object)
        columns[str(name)] = cells
    return frame_of_columns(path, columns)
