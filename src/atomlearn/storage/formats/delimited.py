"""CSV and TSV files, read with the standard library alone.

One reader and no optional dependency: the same file gives the same table on every machine. The
numbers of a row go straight into one float64 buffer, so memory stays near that of X.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.categories import (
    RawTable,
    encode,
    encode_like,
    is_missing,
    is_number,
)
from atomlearn.storage.formats.compressed import open_bytes, open_text, suffix_of
from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.formats.sources import About, RowPiece, RowSource
from atomlearn.storage.formats.table import DataTable, Request, require_name, shown

#: The delimiter of files whose ending says it; of others it is found in the header.
_DELIMITERS = {".tsv": "\t", ".tab": "\t"}


def looks_delimited(suffix: str, line: str) -> bool:
    """Tell whether a text file with this first line is a table."""
    return suffix in (".txt", ".dat", ".data") and any(mark in line.strip() for mark in ",\t;| ")


def read_delimited(path: Path, request: Request) -> DataTable:
    """Return the table of a CSV or TSV file with a header line."""
    raw = _raw_table(path)
    for name in request.exclude:
        raw.require(name)  # a typing error in a name to leave out is an error too
    target, schema = request.target, request.schema
    y = None if target is None else raw.target(target)
    if schema is not None:
        return DataTable(encode_like(raw, schema), y, schema, target, str(path))
    left_out = {target, *request.exclude}
    X, schema = encode(raw, [name for name in raw.header if name not in left_out])
    return DataTable(X, y, schema, target, str(path))


def _raw_table(path: Path) -> RawTable:
    """Return all cells; a column is text once a cell of it is neither missing nor a number.

    A pass over the file that finds a column to be text is made again.
    """
    text: set[int] = set()
    found = None
    while found is None:
        with open_text(path) as stream:
            found = _pass(stream, path, text)
    return found


def _pass(stream: Iterable[str], path: Path, text: set[int]) -> RawTable | None:
    """Return the table; None where more columns turned out to be text, which ``text`` then has."""
    rows = records(stream, path)
    header = header_of(next(rows, (0, []))[1], path)
    number_columns = [j for j in range(len(header)) if j not in text]
    texts: dict[int, list[str]] = {j: [] for j in sorted(text)}
    numbers, lines, newly_text = array("d"), array("q"), set[int]()
    for line, row in rows:
        if len(row) != len(header):
            raise _other_width(f"line {line} of {path}", row, header)
        values, strays = _floats(row if not text else [row[j] for j in number_columns])
        numbers.extend(values)
        newly_text.update(number_columns[place] for place in strays)
        for j, column in texts.items():
            column.append(row[j].strip())
        lines.append(line)
    if newly_text:
        text |= newly_text
        return None
    if not lines:
        raise ValueError(f"{path} has a header but no data; expected one line a sample")
    flat = np.frombuffer(numbers, dtype=np.float64) if numbers else np.zeros(0)
    matrix = flat.reshape(len(lines), len(number_columns))
    slots = {header[j]: slot for slot, j in enumerate(number_columns)}
    named_texts = {header[j]: cells for j, cells in texts.items()}
    return RawTable(path, header, slots, matrix, named_texts, lines)


def records(
    lines: Iterable[str], path: Path, delimiter: str | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line on which a record ends, and its cells; no blank lines.

    Without a ``delimiter`` it is found in the ending of the file or in the first line. Lines are
    taken one at a time, so that whoever gives them knows where a record ended.
    """
    head, rest = [], iter(lines)
    csv.field_size_limit(LIMITS.longest_cell)
    try:
        while delimiter is None and (line := next(rest, "")):
            head.append(line)
            if line.strip():
                delimiter = _DELIMITERS.get(suffix_of(path)) or delimiter_of(line)
        reader = csv.reader(chain(head, rest), delimiter=delimiter or ",", strict=True)
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()):
                yield reader.line_num, row
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8"
        ) from error
    except csv.Error as error:
        raise ValueError(f"{path} is not a readable table: {error}") from error


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
            f"the first line of {path} holds only numbers ({', '.join(map(shown, header[:3]))}, "
            "...); expected column names. Add a header line"
        )
    # R writes an empty name above its row names.
    header = [name or f"column_{j}" for j, name in enumerate(header)]
    if len(set(header)) < len(header):
        twice = min(name for name in header if header.count(name) > 1)
        raise ValueError(f"{path} has more than one column named {shown(twice)}; rename them")
    return header


def delimiter_of(header: str) -> str:
    """Return the delimiter that occurs most often outside quotes in the header."""
    outside = "".join(header.split('"')[::2])
    return max(",\t;", key=outside.count)


def _floats(cells: list[str]) -> tuple[list[float], list[int]]:
    """Return cells as floats, NaN where there is no number, and the places of those with text."""
    try:
        # Python reads 1_000 as a number; a data file that has it means a name.
        if "_" not in "".join(cells):
            return list(map(float, cells)), []
    except ValueError:
        pass
    known = [is_number(cell) for cell in cells]
    pairs = list(zip(cells, known, strict=True))
    strays = [j for j, (cell, is_one) in enumerate(pairs) if not is_one and not is_missing(cell)]
    return [float(cell) if is_one else float("nan") for cell, is_one in pairs], strays


def _other_width(where: str, cells: list[str], header: list[str]) -> ValueError:
    return ValueError(
        f"{where} has {len(cells)} cells, the header has {len(header)}; every line needs the same "
        "number of cells"
    )


class DelimitedRows(RowSource):
    """CSV and TSV with a header line and numbers below it; positions are bytes of the text.

    The target may be text. Other columns of text are refused: which values they take is known
    only at the end of the file.
    """

    def __init__(self, path: Path, request: Request) -> None:
        self.path, self._target = path, request.target
        first = next((line for line in self._lines(0) if line.strip()), "")
        self._delimiter = _DELIMITERS.get(suffix_of(path)) or delimiter_of(first)
        self._header = header_of(next(self._records(0), ([], 0))[0], path)
        self._body = self._at
        left_out = [*request.exclude, *([] if self._target is None else [self._target])]
        for name in left_out:
            require_name(name, self._header, path)
        self._kept = [j for j, name in enumerate(self._header) if name not in left_out]
        if not self._kept:
            raise ValueError(f"{path} has no column left for X besides the target")
        self._place = None if self._target is None else self._header.index(self._target)
        names = [self._header[place] for place in self._kept]
        self.about = About(names, False, np.dtype(np.float64))

    def _lines(self, position: int) -> Iterator[str]:
        """Yield lines as text; ``self._at`` is the position after the last one."""
        with open_bytes(self.path) as stream:
            stream.seek(position)
            self._at = position
            while line := stream.readline(LIMITS.longest_line):
                first = self._at == 0
                self._at += len(line)
                try:
                    yield line.decode("utf-8-sig" if first else "utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{self.path} is not UTF-8 text ({error.reason} before byte {self._at}); "
                        "save it as UTF-8"
                    ) from error

    def _records(self, position: int) -> Iterator[tuple[list[str], int]]:
        """Yield the cells of each record that is not blank, and the position after it."""
        for _, row in records(self._lines(position), self.path, self._delimiter):
            yield row, self._at

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        count = max(1, piece_bytes // (8 * len(self._kept)))
        X = np.empty((count, len(self._kept)))
        y: list[str] = []
        filled, end = 0, position
        for cells, end in self._records(position or self._body):
            where = f"the line of {self.path} that ends at byte {end:,}"
            if len(cells) != len(self._header):
                raise _other_width(where, cells, self._header)
            X[filled] = self._numbers(cells, where)
            if self._place is not None:
                y.append(self._label(cells[self._place].strip(), where))
            filled += 1
            if filled == count:
                yield RowPiece(X, self._labels(y), end)
                X, y, filled = np.empty_like(X), [], 0
        if filled:
            yield RowPiece(X[:filled].copy(), self._labels(y), end)

    def _numbers(self, cells: list[str], where: str) -> list[float]:
        kept = [cells[place] for place in self._kept]
        values, strays = _floats(kept)
        if strays:
            name = self._header[self._kept[strays[0]]]
            raise ValueError(
                f"column {name!r} of {self.path} holds text ({kept[strays[0]]!r} in {where}); "
                "leave it out (--exclude), or turn it into numbers"
            )
        return values

    def _label(self, cell: str, where: str) -> str:
        if is_missing(cell):
            raise ValueError(f"the target {self._target!r} is missing in {where}; drop that line")
        return cell

    def _labels(self, y: list[str]) -> NDArray[Any] | None:
        return None if self._place is None else np.array(y, dtype=np.str_)
