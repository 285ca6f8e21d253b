"""CSV and TSV files, read with the standard library alone.

One reader and no optional dependency: the same file gives the same table on every machine. The
numbers of a row go straight into one float64 buffer, so memory stays near that of X.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import open_text
from atomlearn.storage.formats.table import DataTable, Schema, near_names, tidy_target

Array = NDArray[np.float64]

#: A column of text with more distinct values than this is refused, not one-hot encoded.
MOST_CATEGORIES = 20
_MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "?"})
_DELIMITERS = {".tsv": "\t", ".tab": "\t"}


def read_delimited(
    path: Path, target: str | None, schema: Schema | None, exclude: Sequence[str]
) -> DataTable:
    """Return the table of a CSV or TSV file with a header line."""
    raw = _Reader(path).read()
    for name in exclude:
        raw.require(name)  # a typing error in a name to leave out is an error too
    y = None if target is None else raw.target(target)
    left_out = {target, *exclude}
    columns = [name for name in raw.header if name not in left_out]
    if schema is None:
        X, schema = _encode(raw, columns)
    else:
        X = _encode_like(raw, schema)
    return DataTable(X, y, schema, target, str(path))


@dataclass(frozen=True, slots=True)
class _RawTable:
    """The cells of a file: ``numbers`` (rows, columns of numbers) and lists of text.

    slots : for each name of a column of numbers, its position in ``numbers``; texts : the cells
    of each column of text; lines : the line of the file on which each row ends, for messages.
    """

    path: Path
    header: list[str]
    slots: dict[str, int]
    numbers: Array
    texts: dict[str, list[str]]
    lines: array[int]

    def require(self, name: str) -> None:
        """Raise ValueError with near matches where there is no such column."""
        if name not in self.slots and name not in self.texts:
            raise ValueError(f"{self.path} has no column {name!r}{near_names(name, self.header)}")

    def column(self, name: str) -> Array | list[str]:
        """Return a column, complete, as numbers or as text."""
        self.require(name)
        if name in self.texts:
            cells = self.texts[name]
            missing = [row for row, cell in enumerate(cells) if is_missing(cell)]
            self._refuse_missing(name, missing)
            return cells
        values = self.numbers[:, self.slots[name]]
        self._refuse_missing(name, np.flatnonzero(~np.isfinite(values)))
        return values

    def target(self, name: str) -> NDArray[np.generic]:
        """Return a column as a target."""
        values = self.column(name)
        cells = np.array(values) if isinstance(values, list) else values
        return tidy_target(cells, f"column {name!r} of {self.path}")

    def _refuse_missing(self, name: str, rows: Sequence[int] | NDArray[np.int64]) -> None:
        if len(rows):
            raise ValueError(
                f"column {name!r} of {self.path} has {len(rows)} values that are missing or not "
                f"finite, the first on line {self.lines[rows[0]]}; fill them in, drop those "
                "lines, or leave the column out"
            )


class _Reader:
    """Reads the cells; a column is text once a cell of it is neither missing nor a number."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> _RawTable:
        """Return the raw table. A pass that finds a column to be text is made again."""
        text: set[int] = set()
        while True:
            try:
                with open_text(self.path) as stream:
                    found = self._pass(stream, text)
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{self.path} is not UTF-8 text ({error.reason} at byte {error.start}); "
                    "save it as UTF-8"
                ) from error
            except csv.Error as error:
                raise ValueError(f"{self.path} is not a readable table: {error}") from error
            if isinstance(found, _RawTable):
                return found
            text |= found

    def _pass(self, stream: TextIO, text: set[int]) -> _RawTable | set[int]:
        rows = self._rows(stream)
        header = header_of(next(rows, (0, []))[1], self.path)
        number_columns = [j for j in range(len(header)) if j not in text]
        texts: dict[int, list[str]] = {j: [] for j in sorted(text)}
        numbers, lines, newly_text = array("d"), array("q"), set[int]()
        for line, row in rows:
            if len(row) != len(header):
                raise ValueError(
                    f"line {line} of {self.path} has {len(row)} cells, the header has "
                    f"{len(header)}; every line needs the same number of cells"
                )
            cells = row if not text else [row[j] for j in number_columns]
            numbers.extend(_numbers(cells, number_columns, newly_text))
            for j, column in texts.items():
                column.append(row[j].strip())
            lines.append(line)
        if newly_text:
            return newly_text
        if not lines:
            raise ValueError(f"{self.path} has a header but no data; expected one line a sample")
        values = np.frombuffer(numbers, dtype=np.float64) if numbers else np.zeros(0)
        matrix = values.reshape(len(lines), len(number_columns))
        slots = {header[j]: slot for slot, j in enumerate(number_columns)}
        named_texts = {header[j]: cells for j, cells in texts.items()}
        return _RawTable(self.path, header, slots, matrix, named_texts, lines)

    def _rows(self, stream: TextIO) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the line on which a row ends, and its cells; no blank lines."""
        first = ""
        while not first.strip():
            first = stream.readline()
            if not first:
                return
        stream.seek(0)
        delimiter = _DELIMITERS.get(inner_suffix(self.path)) or delimiter_of(first)
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        csv.field_size_limit(1 << 27)
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()):
                yield reader.line_num, row


def header_of(cells: list[str], path: Path) -> list[str]:
    """Return the column names of a header line, or raise ValueError."""
    if not cells:
        raise ValueError(f"{path} is empty; expected a header line with column names")
    header = [cell.strip() for cell in cells]
    counted = header == [str(j) for j in range(len(header))]
    # "nan" and "inf" are numbers to Python, but may well be names.
    numeric = all(is_number(name) and any(map(str.isdigit, name)) for name in header)
    if numeric and not counted:
        raise ValueError(
            f"the first line of {path} holds only numbers ({', '.join(header[:3])}, "
            "...); expected column names. Add a header line"
        )
    # R writes an empty name above its row names.
    header = [name or f"column_{j}" for j, name in enumerate(header)]
    twice = {name for name in header if header.count(name) > 1} if _repeats(header) else ()
    if twice:
        raise ValueError(f"{path} has more than one column named {sorted(twice)[0]!r}; rename them")
    return header


def _repeats(names: list[str]) -> bool:
    return len(set(names)) < len(names)


def _numbers(cells: list[str], columns: list[int], newly_text: set[int]) -> list[float]:
    """Return the cells as floats, NaN where missing; note the columns that are text."""
    try:
        # Python reads 1_000 as a number; a data file that has it means a name.
        if "_" not in "".join(cells):
            return list(map(float, cells))
    except ValueError:
        pass
    result = []
    for j, cell in zip(columns, cells, strict=True):
        if is_number(cell):
            result.append(float(cell))
        else:
            result.append(float("nan"))
            if not is_missing(cell):
                newly_text.add(j)
    return result


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_missing(cell: str) -> bool:
    return cell.strip().casefold() in _MISSING


def inner_suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".xz"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def delimiter_of(header: str) -> str:
    """Return the delimiter that occurs most often outside quotes in the header."""
    outside = "".join(header.split('"')[::2])
    return max(",\t;", key=outside.count)


def _encode(raw: _RawTable, columns: list[str]) -> tuple[Array, Schema]:
    """Return X and its schema: numbers as they are, text one-hot as ``column=value``."""
    if not columns:
        raise ValueError(f"{raw.path} has no column left for X besides the target")
    if list(raw.slots) == columns:
        # The common case, without a copy: every column is a number and a feature.
        for name in columns if not np.isfinite(raw.numbers).all() else ():
            raw.column(name)
        return raw.numbers, Schema(len(columns), tuple(columns))
    parts: list[Array] = []
    names: list[str] = []
    categories: dict[str, tuple[str, ...]] = {}
    for column in columns:
        values = raw.column(column)
        if isinstance(values, list):
            categories[column] = _categories(raw, column, values)
            shown = _shown(categories[column])
            names += [f"{column}={value}" for value in shown]
            parts += _indicators(values, shown)
        else:
            names.append(column)
            parts.append(values)
    if _repeats(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two columns of {raw.path} would both be called {twice!r}; rename one")
    X = np.empty((len(raw.lines), len(names)), order="F")
    for j, part in enumerate(parts):
        X[:, j] = part
    return X, Schema(len(names), tuple(names), categories)


def _encode_like(raw: _RawTable, schema: Schema) -> Array:
    """Return the columns that ``schema`` names, in its order; other columns are left out."""
    if schema.names is None:
        raise ValueError(
            f"{raw.path} has named columns, but the model was fitted to columns without names; "
            "give it data in the format it was fitted to"
        )
    X = np.empty((len(raw.lines), schema.n_features), order="F")
    makers = _makers(raw, schema)
    for j, name in enumerate(schema.names):
        if name in makers:
            X[:, j] = makers[name]()
            continue
        values = raw.column(name)
        if isinstance(values, list):
            row = next(row for row, cell in enumerate(values) if not is_number(cell))
            raise ValueError(
                f"column {name!r} of {raw.path} held numbers when the model was fitted; found "
                f"{values[row]!r} on line {raw.lines[row]}"
            )
        X[:, j] = values
    return X


def _makers(raw: _RawTable, schema: Schema) -> dict[str, Callable[[], Array]]:
    """Return, for each one-hot name of the schema, what makes that column."""
    makers: dict[str, Callable[[], Array]] = {}
    for column, known in schema.categories.items():
        values = raw.column(column)
        if not isinstance(values, list):
            raise ValueError(
                f"column {column!r} of {raw.path} holds numbers; when the model was fitted its "
                f"values were {', '.join(map(repr, known[:5]))}"
            )
        unknown = set(values).difference(known)
        if unknown:
            row = next(row for row, cell in enumerate(values) if cell in unknown)
            raise ValueError(
                f"column {column!r} of {raw.path} holds {values[row]!r} on line "
                f"{raw.lines[row]}, which did not occur when the model was fitted; known are "
                f"{', '.join(map(repr, known))}"
            )
        for value in known:
            makers[f"{column}={value}"] = lambda values=values, value=value: _indicators(  # type: ignore[misc]
                values, (value,)
            )[0]
    return makers


def _categories(raw: _RawTable, column: str, cells: list[str]) -> tuple[str, ...]:
    """Return the distinct values of a text column, ascending, or raise ValueError."""
    distinct = sorted(set(cells))
    stray = next(row for row, cell in enumerate(cells) if not is_number(cell))
    where = f"column {column!r} of {raw.path}"
    if len(distinct) > MOST_CATEGORIES:
        raise ValueError(
            f"{where} is text ({cells[stray]!r} on line {raw.lines[stray]}) with "
            f"{len(distinct)} distinct values; at most {MOST_CATEGORIES} are one-hot encoded. "
            "Leave the column out, group its values, or turn it into numbers"
        )
    if any(is_number(value) for value in distinct):
        raise ValueError(
            f"{where} mixes numbers with text ({cells[stray]!r} on line {raw.lines[stray]}); "
            "correct that cell, or put a letter before the numbers if they are categories"
        )
    return tuple(distinct)


def _shown(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values that get a column: of two, the second says it all."""
    return values[1:] if len(values) == 2 else values


def _indicators(cells: list[str], values: Sequence[str]) -> list[Array]:
    text = np.array(cells)
    return [(text == value).astype(np.float64) for value in values]
