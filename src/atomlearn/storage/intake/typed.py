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

from atomlearn._support import as_frame
from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.held import LIMITS, understood
from atomlearn.storage.formats.messages import listing
from atomlearn.storage.intake.cells import Columns, TextForm, as_numbers, is_numeric
from atomlearn.storage.intake.columns import INTAKE
from atomlearn.storage.intake.frame import Frame, TableFile, distinct_names, names_of_lines
from atomlearn.storage.intake.kinds import is_code, is_id_name

#: Largest number of rows of an Excel sheet.
_MOST_ROWS = 2**20


class TypedFile(TableFile):
    """Base class of files with typed columns (Parquet, Arrow, Excel).

    A text column becomes numeric if all of its cells can be parsed as numbers. The parameters are
    those of ``TableFile``.

    Attributes
    ----------
    kind : str
        Kind of file, for messages.
    module : str
        Module that reads the file.
    extra : str
        Extra of this package that installs the module.
    library : str
        Name of the package to install, if it is not that of the module.
    has_lines : bool
        Whether the names of the columns are in a row of cells.
    """

    kind: str
    module: str
    extra: str
    library = ""
    has_lines = False

    def __init__(self, path: Path, form: TextForm, sheet: str | None = None) -> None:
        """Import the library of the format, and open the file ``path``.

        ``form`` says which texts mean missing values, and ``sheet`` names the sheet of a workbook.
        """
        # Text with a decimal comma remains text.
        super().__init__(path, replace(form, decimal="."), sheet)
        if form.header_row and not self.has_lines:
            raise ValueError(
                f"text and sheets take --header-row; {path} names its columns: leave it out"
            )
        self._reader = imported(self.module, self.extra, path, self.library)
        names = self._opened()
        if not names:
            raise ValueError(f"{path} holds no data; expected columns with one row a sample")
        self.header, notes = distinct_names(names)
        self.notes += notes

    @abstractmethod
    def _opened(self) -> list[str]:
        """Open the file and return the names of the columns; called once, by the constructor."""

    @abstractmethod
    def _tables(self, rows: int) -> Iterator[Sequence[Any]]:
        """Yield the columns of consecutive groups of about ``rows`` rows."""

    def _understood(self) -> AbstractContextManager[None]:
        """Return a context that reports an unreadable file by a clear error."""
        return understood(self.path, self.kind, "; copy it afresh")

    def pieces(self) -> Iterator[Columns]:
        """Yield the columns of consecutive groups of rows."""
        tables = self._tables(max(LIMITS.piece_bytes // (8 * len(self.header)), 1))
        while True:
            with self._understood():
                columns = next(tables, None)
                if columns is None:
                    return
                cells = [self._cells(index, column) for index, column in enumerate(columns)]
            yield cells

    def _cells(self, index: int, column: Any) -> NDArray[Any]:
        """Return a column of a piece as numbers or as text; labels remain text.

        ``index`` is its number; ``column`` is a column of Arrow or a list of cells.
        """
        name = self.header[index]
        values = column if isinstance(column, list) else _arrow_values(column, name)
        if isinstance(values, np.ndarray):
            return values
        return _objects(values, name, index in self.text or name in self.form.labels)


def _arrow_names(schema: Any) -> list[str]:
    """Return the names of the columns of an Arrow schema; the index of pandas is called "index"."""
    return ["index" if name.startswith("__index_level_") else name for name in schema.names]


class ParquetFile(TypedFile):
    """The table in a Parquet file."""

    kind = "Parquet file"
    module = "pyarrow.parquet"
    extra = "pyarrow"

    def _opened(self) -> list[str]:
        """Open the file, and return the names of the columns."""
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
        """Yield the columns of consecutive groups of at most ``rows`` rows."""
        # A thread that cannot be started because of the memory limit would end the process.
        for batch in self._file.iter_batches(batch_size=rows, use_threads=False):
            yield batch.columns


class ArrowFile(TypedFile):
    """The table in an Arrow or Feather file (IPC, as a file or as a stream)."""

    kind = "Arrow file"
    module = "pyarrow.ipc"
    extra = "pyarrow"

    def _source(self) -> tuple[Any, Iterator[Any]]:
        """Return the schema of the file, and an iterator over its batches of rows."""
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
        """Open the file, and return the names of the columns."""
        with self._understood():
            return _arrow_names(self._source()[0])

    def _tables(self, rows: int) -> Iterator[Sequence[Any]]:
        """Yield the columns of consecutive groups of at most ``rows`` rows."""
        for batch in self._source()[1]:
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows).columns


class ExcelFile(TypedFile):
    """The table in a sheet of a workbook (default: the first sheet).

    Cells are read at once. The header is the first row that is not empty, or the row that the user
    names.
    """

    kind = "Excel file"
    module = "openpyxl"
    extra = "excel"
    has_lines = True

    def _opened(self) -> list[str]:
        """Read all cells of the sheet, and return the names of the columns."""
        # Errors of the library in ``self._understood()`` are reported as an unreadable file.
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
        # Rows of names, and the numbers of the rows of data below them. ``header_lines`` are the
        # numbers in ``header_row``, the text of --header-row.
        lines = self.form.header_lines or [min(rows, default=1)]
        self._numbers = [number for number in rows if number > lines[-1]]
        if not self._numbers:
            raise ValueError(
                f"a sheet of {self.path} holds no table (header and rows); give --sheet"
            )
        names = names_of_lines([[_text(cell) for cell in rows.get(line, [])] for line in lines])
        # All rows are extended to the width of the longest.
        width = max(len(names), *(len(rows[number]) for number in self._numbers))
        cells = [rows[line] + [None] * (width - len(rows[line])) for line in self._numbers]
        self._columns = [list(column) for column in zip(*cells, strict=True)]
        # A header that the user did not name may be a title.
        if not self.form.header_row:
            self._note_title(lines[0], rows, width)
        return names + [""] * (width - len(names))

    def _note_title(self, first: int, rows: Mapping[int, list[Any]], width: int) -> None:
        """Add a note if the first row may be a title, not the names of the columns.

        It may be if it has cells for at most half of the ``width`` columns and a later row has text
        in all of them. ``first`` is its number, and ``rows`` has the cells by number of row.
        """
        n_titles = sum(cell is not None for cell in rows[first])
        header_rows = [
            number
            for number in self._numbers[: INTAKE.sniffed]
            if len(rows[number]) == width and all(map(_is_word, rows[number]))
        ]
        if 2 * n_titles <= width and header_rows:
            self.notes.append(
                f"row {first} names {n_titles} of {width} columns; if it is a title, type "
                f"--header-row {header_rows[0]}"
            )

    def line(self, row: int) -> str:
        """Return the place of a row (counted from 0) in the sheet, for messages."""
        return f"row {self._numbers[row]} of the sheet"

    def _tables(self, rows: int) -> Iterator[Sequence[Any]]:
        """Yield the columns of all rows as one group; the number ``rows`` is ignored."""
        yield self._columns

    def _rows(self, sheet: Any) -> dict[int, list[Any]]:
        """Return the rows of ``sheet`` that are not empty, each up to its last cell, by number.

        Rows are numbered from 1, as Excel does.
        """
        rows = dict[int, list[Any]]()
        for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
            if number > _MOST_ROWS:
                raise ValueError(f"its sheet has more than the {_MOST_ROWS:,} rows that Excel has")
            # The number of cells up to the last one that is not empty.
            lengths = range(len(cells), 0, -1)
            width = next((length for length in lengths if cells[length - 1] is not None), 0)
            if width:
                rows[number] = list(cells[:width])
        return rows


def frame_of(table: Any, path: Path = Path("the table"), *, as_days: bool = False) -> Frame:
    """Return the frame of a data frame (pandas, polars, Arrow) or of a mapping of columns.

    ``path`` names the table in messages. Columns of dates become ISO text, or days since 1970 if
    ``as_days``.
    """
    if isinstance(table, Mapping):
        n_rows = 0
        values = {str(name): _cells_of(np.asarray(cells), name) for name, cells in table.items()}
    else:
        frame = as_frame(table)
        n_rows = len(frame)
        columns = frame.iter_columns()
        values = {str(column.name): _cells_of_series(column, as_days) for column in columns}
    return Frame(path, values, n_rows if not values else len(next(iter(values.values()))))


def _cells_of_series(column: Any, as_days: bool) -> NDArray[Any]:
    """Return a column of a data frame, wrapped by narwhals, as numbers or as text.

    The labels of a category remain text. Dates become days since 1970 if ``as_days``, else text.
    """
    import narwhals.stable.v2 as nw

    kind = column.dtype
    if kind.is_nested():
        raise ValueError(
            f"column {column.name!r} holds {kind}, several values a cell; type --drop {column.name}"
        )
    if kind in (nw.Categorical, nw.Enum):
        return _objects(column.cast(nw.String).to_list(), column.name, is_label=True)
    # Numbers are converted by the library of the data frame, because NumPy lacks types with gaps.
    if kind.is_numeric() or kind == nw.Boolean:
        column = column.cast(nw.Float64)
    if as_days and kind in (nw.Date, nw.Datetime):
        seconds = column.dt.timestamp("us").cast(nw.Float64).to_numpy() / 1e6
        return np.asarray(seconds / 86_400)
    return _cells_of(column.to_numpy(), column.name)


def _cells_of(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the array ``values`` as floats or as text.

    Dates become ISO text, durations become days, and other objects become numbers if all can.
    ``name`` is the column.
    """
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "m":
        return np.asarray(values / np.timedelta64(1, "D"), dtype=np.float64)
    if values.dtype.kind == "M":
        days = values.astype("datetime64[s]").astype(str)
        return np.where(days == "NaT", "", days).astype(object)
    return _objects(values.tolist(), str(name))


def _is_word(cell: Any) -> bool:
    """Return whether a cell has text that is no number."""
    return not is_numeric([_text(cell)])


def _is_number(kind: Any) -> bool:
    """Return whether ``kind``, a type of Arrow, is numeric, and not a date or time."""
    from pyarrow import types

    return bool(types.is_primitive(kind) and not types.is_temporal(kind))


def _arrow_values(column: Any, name: str) -> NDArray[Any] | list[Any]:
    """Return an Arrow column as floats, or as a list of its cells if it is not numeric.

    ``name`` is its name, for messages. Columns of lists or records are refused.
    """
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
        return [labels[code] for code in column.indices.fill_null(len(labels) - 1).to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _objects(cells: list[Any], name: str, is_label: bool = False) -> NDArray[Any]:
    """Return ``cells`` (Python objects) as an array of floats if all are numbers, else of strings.

    Dates become YYYY-MM-DD. Labels (``is_label``) remain strings, and so do codes such as 0007 if
    the ``name`` of the column says that it has identifiers.
    """
    # Equal text shares one object.
    plain = {cell: _text(cell) for cell in {cell for cell in cells if type(cell) is str}}
    words = [plain[cell] if type(cell) is str else _text(cell) for cell in cells]
    objects = np.array(words, dtype=object)
    if is_label or (is_id_name(name) and any(map(is_code, words))):
        return objects
    return as_numbers(objects)


def _text(cell: Any) -> str:
    """Return a cell as a string: "" if missing, ISO format for dates, 0 or 1 for booleans."""
    # Missing values are None, those of pandas, and NaN, which differs from itself.
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell:
        return ""
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ") if cell.time() != datetime.time() else str(cell.date())
    if isinstance(cell, bytes):
        return cell.decode("utf-8", errors="replace")
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))  # for example a code without a label, among labels
    return str(cell).strip()
