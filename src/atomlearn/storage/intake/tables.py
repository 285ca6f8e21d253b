"""Frames from tables with types of their own: Parquet, Feather, Arrow, Excel, data frames."""

from __future__ import annotations

import contextlib
import datetime
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.held import BELIEVED, fits, hold
from atomlearn.storage.formats.understood import understood
from atomlearn.storage.intake.frame import Frame, as_numbers, distinct_names, frame_of_columns
from atomlearn.storage.intake.kinds import is_code, is_id_name
from atomlearn.storage.intake.problems import listed

Labels = frozenset[str]
#: Rows of a sheet, beyond which Excel has none.
_MOST_ROWS = 2**20


def read_parquet(path: Path, labels: Labels = frozenset()) -> Frame:
    """Return the frame of a Parquet file; ``labels`` : see ``TextForm``."""
    pq = imported("pyarrow.parquet", "pyarrow", path)
    with understood(path, "Parquet file", "; copy it afresh"):
        file = pq.ParquetFile(path)
        fits(path, "its table, twice,", 2 * max(_bytes(file.metadata), _unpacked(file.metadata)))
        table = file.read()
    return _arrow_frame(path, table, labels)


def read_arrow(path: Path, labels: Labels = frozenset()) -> Frame:
    """Return the frame of an Arrow or Feather file (IPC, as a file or as a stream)."""
    feather, ipc = (imported(f"pyarrow.{module}", "pyarrow", path) for module in ("feather", "ipc"))
    with understood(path, "Arrow file", "; copy it afresh"):
        fits(path, "its table, twice,", 2 * arrow_bytes(path))
        try:
            table = feather.read_table(path)
        except MemoryError:
            raise
        except Exception:  # it is a stream, or damaged
            with path.open("rb") as stream:
                table = ipc.open_stream(stream).read_all()
    return _arrow_frame(path, table, labels)


def parquet_bytes(path: Path) -> int:
    """Return what the numbers of a Parquet file take in memory."""
    pq = imported("pyarrow.parquet", "pyarrow", path)
    with understood(path, "Parquet file"):
        return _bytes(pq.ParquetFile(path).metadata)


def _bytes(about: Any) -> int:
    return 8 * int(about.num_rows) * int(about.num_columns)


def _unpacked(about: Any) -> int:
    groups = map(about.row_group, range(about.num_row_groups))
    return sum(max(int(group.total_byte_size), 0) for group in groups)


def arrow_bytes(path: Path) -> int:
    """Return what the numbers of an Arrow file take in memory; of a stream, which does not say, its
    size.

    Rows are counted without being read.
    """
    data = imported("pyarrow.dataset", "pyarrow", path)
    try:
        table = data.dataset(path, format="ipc")
        return max(8 * int(table.count_rows()) * len(table.schema), path.stat().st_size)
    except (OSError, ValueError):
        return path.stat().st_size


def _arrow_frame(path: Path, table: Any, labels: Labels) -> Frame:
    names, notes = distinct_names(table.schema.names)
    names = plain_names(names)
    fits(path, "its numbers", 8 * table.num_rows * len(names))
    columns = {
        name: arrow_column(table.column(place), path, name, labels)
        for place, name in enumerate(names)
    }
    if not columns or table.num_rows == 0:
        raise ValueError(f"{path} holds no data; expected columns with one row a sample")
    return frame_of_columns(path, columns, notes)


def plain_names(names: list[str]) -> list[str]:
    """Return names of columns; what pandas stores as its index is one, and told as an index."""
    return ["index" if name.startswith("__index_level_") else name for name in names]


def arrow_column(column: Any, path: Path, name: str, labels: Labels) -> NDArray[Any]:
    """Return a column of an Arrow table as numbers, or as text; ``labels`` stay text."""
    with understood(path, f"table in its column {name!r}"):
        values = _arrow_values(column)
    return values if isinstance(values, np.ndarray) else _objects(values, name, labels)


def _arrow_values(column: Any) -> NDArray[Any] | list[Any]:
    """Return a column as numbers, else as a list of what its cells hold."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        # Each label once, however many cells have it.
        cells: list[Any] = []
        for chunk in column.chunks:
            held = [*chunk.dictionary.to_pylist(), None]
            cells += [held[place] for place in chunk.indices.fill_null(len(held) - 1).to_pylist()]
        return cells
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        if types.is_boolean(kind):
            column = column.cast("int8")
        return np.asarray(column.cast("float64", safe=False).to_numpy(), dtype=np.float64)
    if types.is_decimal(kind):
        return np.asarray(column.cast("float64").to_numpy(), dtype=np.float64)
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_nested(kind):
        raise ValueError(f"it holds {kind}, several values a cell; leave it out (--drop)")
    found: list[Any] = column.to_pylist()
    return found


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
    _check_workbook(path)
    with understood(path, "Excel file", "; copy it afresh"):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        if sheet is not None and sheet not in book.sheetnames:
            shown = ", ".join(repr(name) for name in book.sheetnames[:8])
            raise ValueError(f"{path} has no sheet {sheet!r}; there are {shown}")
        with understood(path, "Excel file", "; copy it afresh"):
            rows = _rows_of(book[sheet or book.sheetnames[0]], path)
        others = list(book.sheetnames[1:]) if sheet is None else []
    finally:
        book.close()
    if len(rows) < 2:
        raise ValueError(f"the sheet of {path} holds no table: a header and rows; give --sheet")
    width = max(map(len, rows))
    fits(path, "its table", 8 * len(rows) * width)
    rows = [row + [None] * (width - len(row)) for row in rows]
    names, notes = distinct_names([_text(cell) for cell in rows[0][:width]])
    columns = {
        name: _objects([row[place] for row in rows[1:]], name, labels)
        for place, name in enumerate(names)
    }
    if others:
        shown = listed(others)
        notes.append(f"the first of {len(others) + 1} sheets was read (--sheet NAME: {shown})")
    return frame_of_columns(path, columns, notes)


def _rows_of(sheet: Any, path: Path) -> list[list[Any]]:
    """Return the rows that hold anything, each as far as it does."""
    rows, held, stored = list[list[Any]](), 0, path.stat().st_size
    for number, cells in enumerate(sheet.iter_rows(values_only=True)):
        if number >= _MOST_ROWS:
            raise ValueError(f"its sheet has more than the {_MOST_ROWS:,} rows that Excel has")
        last = next((n for n in range(len(cells), 0, -1) if cells[n - 1] is not None), 0)
        held += 8 * last
        if last:
            rows.append(list(cells[:last]))
            hold(path, "its cells", held, stored, BELIEVED.filtered)
    return rows


def _check_workbook(path: Path) -> None:
    """Hold what is in a workbook against its size, and refuse definitions of entities in it.

    Entities are short names for long text, or for other files; no workbook has any.
    """
    stored, total = path.stat().st_size, 0
    with understood(path, "Excel file", "; copy it afresh"), zipfile.ZipFile(path) as book:
        for item in book.infolist():
            total += item.file_size
            hold(path, item.filename, total, stored, BELIEVED.deflated)
            # What is no XML, or broken, is nothing to look for definitions in.
            with book.open(item) as stream, contextlib.suppress(expat.ExpatError):
                _check_head(stream)


def _check_head(stream: Any) -> None:
    """Read XML as far as its first element, and no definition."""
    reader, begun = expat.ParserCreate(), []

    def refuse(*_: object) -> None:
        raise ValueError("its XML defines entities, which are not read")

    reader.StartDoctypeDeclHandler = refuse
    reader.StartElementHandler = lambda *_: begun.append(True)
    while not begun and (part := stream.read(4096)):
        reader.Parse(part)


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
