"""TypedFile: Parquet, Arrow and Excel files, and data frames, whose cells have types."""

from __future__ import annotations

import contextlib
import datetime
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import as_table, library_of
from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.held import LIMITS, understood
from atomlearn.storage.formats.messages import listing
from atomlearn.storage.intake.cells import Columns, TextForm
from atomlearn.storage.intake.frame import (
    Frame,
    TableFile,
    as_numbers,
    distinct_names,
)
from atomlearn.storage.intake.kinds import is_code, is_id_name

#: Largest number of rows of an Excel sheet.
_MOST_ROWS = 2**20


class TypedFile(TableFile):
    """Base class of files with typed columns (Parquet, Arrow, Excel).

    A text column becomes numeric if all of its cells can be parsed as numbers.

    Attributes
    ----------
    kind : str
        Kind of file, for messages.
    module : str
        Module that reads the file.
    extra : str
        Extra of this package that installs the module.
    """

    kind: str
    module: str
    extra: str

    def __init__(self, path: Path, form: TextForm, sheet: str | None = None) -> None:
        # Text with a decimal comma remains text.
        super().__init__(path, replace(form, decimal="."), sheet)
        self._reader = imported(self.module, self.extra, path)
        names = self._opened()
        if not names:
            raise ValueError(f"{path} holds no data; expected columns with one row a sample")
        self.header, notes = distinct_names(names)
        self.notes += notes

    @abstractmethod
    def _opened(self) -> list[str]:
        """Return the names of the columns."""

    @abstractmethod
    def _tables(self, rows: int) -> Iterator[Sequence[Any]]:
        """Yield the columns of consecutive groups of about ``rows`` rows."""

    def _understood(self) -> AbstractContextManager[None]:
        return understood(self.path, self.kind, "; copy it afresh")

    def pieces(self) -> Iterator[Columns]:
        """Yield the columns of consecutive groups of rows."""
        tables = self._tables(max(LIMITS.piece_bytes // (8 * len(self.header)), 1))
        while True:
            with self._understood():
                columns = next(tables, None)
                if columns is None:
                    return
                cells = [self._cells(place, column) for place, column in enumerate(columns)]
            yield cells

    def _cells(self, place: int, column: Any) -> NDArray[Any]:
        """Return a column as numbers or as text; labels remain text."""
        name = self.header[place]
        values = column if isinstance(column, list) else _arrow_values(column, name)
        if isinstance(values, np.ndarray):
            return values
        return _objects(values, name, place in self.text or name in self.form.labels)


def _arrow_names(schema: Any) -> list[str]:
    """Return names of columns; the index that pandas stores is called "index"."""
    return ["index" if name.startswith("__index_level_") else name for name in schema.names]


class ParquetFile(TypedFile):
    """The rows of a Parquet file."""

    kind = "Parquet file"
    module = "pyarrow.parquet"
    extra = "pyarrow"

    def _opened(self) -> list[str]:
        with self._understood():
            self._file = self._reader.ParquetFile(self.path)
            schema = self._file.schema_arrow
            self.dtypes = {
                field.name: np.dtype(field.type.to_pandas_dtype())
                for field in schema
                if _is_number(field.type)
            }
        return _arrow_names(schema)

    def _tables(self, rows: int) -> Iterator[Sequence[Any]]:
        # A thread that cannot be started because of the memory limit would end the process.
        for batch in self._file.iter_batches(batch_size=rows, use_threads=False):
            yield batch.columns


class ArrowFile(TypedFile):
    """The rows of an Arrow or Feather file (IPC, as a file or as a stream)."""

    kind = "Arrow file"
    module = "pyarrow.ipc"
    extra = "pyarrow"

    def _source(self) -> tuple[Any, Iterator[Any]]:
        """Return the schema and the batches."""
        from pyarrow import ArrowInvalid, memory_map

        mapped = memory_map(str(self.path))
        options = self._reader.IpcReadOptions(use_threads=False)
        try:
            file = self._reader.open_file(mapped, options=options)
        except ArrowInvalid:
            stream = self._reader.open_stream(mapped, options=options)
            return stream.schema, iter(stream)
        return file.schema, map(file.get_batch, range(file.num_record_batches))

    def _opened(self) -> list[str]:
        with self._understood():
            return _arrow_names(self._source()[0])

    def _tables(self, rows: int) -> Iterator[Sequence[Any]]:
        for batch in self._source()[1]:
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows).columns


class ExcelFile(TypedFile):
    """The rows of a sheet of a workbook (default: the first sheet)."""

    kind = "Excel file"
    module = "openpyxl"
    extra = "excel"

    def _opened(self) -> list[str]:
        with self._understood():
            book = self._reader.load_workbook(self.path, read_only=True, data_only=True)
        sheets = book.sheetnames
        if self.sheet is None and len(sheets) > 1:
            others = listing(sheets[1:])
            self.notes.append(
                f"the first of {len(sheets)} sheets was read (--sheet NAME: {others})"
            )
        if self.sheet not in (None, *sheets):
            raise ValueError(
                f"{self.path} has no sheet {self.sheet!r}; there are {listing(sheets)}"
            )
        with contextlib.closing(book), self._understood():
            rows = self._rows(book[self.sheet or sheets[0]])
        if len(rows) < 2:
            raise ValueError(
                f"a sheet of {self.path} holds no table (header and rows); give --sheet"
            )
        width = max(map(len, rows))
        cells = [row + [None] * (width - len(row)) for row in rows]
        self._columns = [list(column) for column in zip(*cells[1:], strict=True)]
        return [_text(cell) for cell in cells[0]]

    def _tables(self, rows: int) -> Iterator[Sequence[Any]]:
        yield self._columns

    def _rows(self, sheet: Any) -> list[list[Any]]:
        """Return the rows that are not empty, each up to its last cell that is not empty."""
        rows = list[list[Any]]()
        for number, cells in enumerate(sheet.iter_rows(values_only=True)):
            if number >= _MOST_ROWS:
                raise ValueError(f"its sheet has more than the {_MOST_ROWS:,} rows that Excel has")
            last = next((n for n in range(len(cells), 0, -1) if cells[n - 1] is not None), 0)
            if last:
                rows.append(list(cells[:last]))
        return rows


def frame_of(table: Any, path: Path = Path("the table")) -> Frame:
    """Return the frame of a data frame (pandas, polars, Arrow) or of a mapping of columns."""
    table = as_table(table)
    if library_of(table) == "pyarrow":
        columns = zip(table.column_names, table.columns, strict=True)
        table = {name: _arrow_values(column.combine_chunks(), name) for name, column in columns}
    names = list(table) if isinstance(table, Mapping) else list(table.columns)
    found = {}
    for name in names:
        values = np.asarray(table[name])
        if values.dtype.kind in "biuf":
            cells = values.astype(np.float64)
        elif values.dtype.kind == "M":
            days = values.astype("datetime64[s]").astype(str)
            cells = np.where(days == "NaT", "", days).astype(object)
        else:
            cells = _objects(values.tolist(), str(name))
        found[str(name)] = cells
    return Frame(path, found, len(table) if not names else len(cells))


def _is_number(kind: Any) -> bool:
    """Return whether an Arrow type is numeric, and not a date or time."""
    from pyarrow import types

    return bool(types.is_primitive(kind) and not types.is_temporal(kind))


def _arrow_values(column: Any, name: str) -> NDArray[Any] | list[Any]:
    """Return an Arrow column as floats, or as a list of its cells if it is not numeric."""
    from pyarrow import types

    kind = column.type
    if types.is_nested(kind):
        raise ValueError(f"column {name!r} holds {kind}, several values a cell; type --drop {name}")
    if types.is_boolean(kind):
        column = column.cast("int8")
    if _is_number(kind):
        numbers = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(numbers, dtype=np.float64)
    if types.is_dictionary(kind):
        # Each label is converted only once.
        labels = [*column.dictionary.to_pylist(), None]
        return [labels[place] for place in column.indices.fill_null(len(labels) - 1).to_pylist()]
    found: list[Any] = column.to_pylist()
    return found


def _objects(cells: list[Any], name: str, is_label: bool = False) -> NDArray[Any]:
    """Convert Python objects to an array of floats if all are numbers, else of strings.

    Dates become YYYY-MM-DD. Labels (``is_label``) and identifiers such as 0007 remain strings.
    """
    words = [_text(cell) for cell in cells]
    found = np.array(words, dtype=object)
    if is_label or (is_id_name(name) and any(map(is_code, words))):
        return found
    return as_numbers(found)


def _text(cell: Any) -> str:
    """Return a cell as a string: "" if missing, ISO format for dates, 0 or 1 for booleans."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell:
        return ""
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ") if cell.time() != datetime.time() else str(cell.date())
    if isinstance(cell, bytes):
        return cell.decode("utf-8", errors="replace")
    if isinstance(cell, bool):
        return str(int(cell))
    return str(cell).strip()
