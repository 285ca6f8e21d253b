"""Delimited text with any delimiter, decimal mark, encoding and compression."""

from __future__ import annotations

import codecs
import contextlib
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from atomlearn.storage.formats.compressed import open_bytes, open_text, suffix_of, whole_lines
from atomlearn.storage.formats.held import LIMITS
from atomlearn.storage.intake.cells import Columns, TextForm, by_polars, in_rows, records
from atomlearn.storage.intake.columns import INTAKE
from atomlearn.storage.intake.frame import TableFile, distinct_names
from atomlearn.storage.intake.kinds import is_code, is_id_name

_DELIMITERS = {".tsv": "\t", ".tab": "\t"}
#: UTF-8 with or without a byte order mark.
_UTF8 = "utf-8-sig"


def _as_windows(error: Any) -> tuple[str, int]:
    """Return bytes that are no UTF-8 as Windows text, the most frequent alternative."""
    return error.object[error.start : error.end].decode("cp1252"), error.end


codecs.register_error("windows-1252", _as_windows)


def looks_delimited(suffix: str, line: str) -> bool:
    """Return whether a text file with this first line is a table."""
    return suffix in (".txt", ".dat", ".data") and any(mark in line.strip() for mark in ",\t;| ")


class TextFile(TableFile):
    """A text file; its ``form`` has no detected field left empty."""

    def __init__(self, path: Path, form: TextForm, sheet: str | None = None) -> None:
        super().__init__(path, form, sheet)
        self._asked = form.encoding
        encoding = form.encoding or self._encoding()
        self.form = replace(form, encoding=encoding)
        _, sample = next(self._blocks(0, LIMITS.head_bytes), (0, ""))
        delimiter = form.delimiter or _DELIMITERS.get(suffix_of(path)) or delimiter_in(sample)
        self.form = replace(self.form, delimiter=delimiter)
        self._begin = _comments(sample, delimiter)
        rows = records(path, sample[self._begin :], self.form)
        n_lines, first = next(rows, (0, None))
        if first is None:
            raise ValueError(f"{path} is empty; expected a header line with column names")
        some = [row for _, row in islice(rows, INTAKE.sniffed)]
        self.header, self._width, notes = header_in(first, some[0] if some else None, form, path)
        self.notes += notes
        if form.header:
            for _ in range(n_lines):  # the rows begin after the header
                self._begin = sample.find("\n", self._begin) + 1 or len(sample)
            self.text |= {place for place in range(len(self.header)) if self._names(place, some)}
        commas = {
            place
            for row in some
            for place, cell in enumerate(row)
            if "," in cell and self.form.number(cell) is not None
        }
        if commas:
            kind = "decimal commas" if delimiter != "," else "commas between thousands"
            self.notes.append(f"{len(commas)} columns have {kind} (--decimal . keeps them as text)")

    def _encoding(self) -> str:
        with open_bytes(self.path) as stream:
            head = stream.read(LIMITS.head_bytes)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        try:
            # A letter may be cut in two at the end of the piece.
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError:
            self.notes.append(
                "the text is not UTF-8; it was read as Windows-1252 (--encoding says other)"
            )
        return _UTF8

    def _names(self, place: int, rows: Sequence[Sequence[str]]) -> bool:
        """Return whether a column holds names, which are no numbers though they may look so."""
        name = self.header[place]
        cells = (row[place].strip() for row in rows if place < len(row))
        return name in self.form.labels or (is_id_name(name) and any(map(is_code, cells)))

    def _blocks(self, begin: int, n_bytes: int) -> Iterator[tuple[int, str]]:
        """Yield the number of lines before a block, and the block: whole lines, quotes complete."""
        encoding = self.form.encoding
        path = self.path
        errors = "windows-1252" if encoding == _UTF8 else "strict"
        try:
            with open_text(path, encoding, errors) as stream:
                before = stream.read(begin).count("\n")
                while content := whole_lines(stream, n_bytes, path):
                    parts = [content]
                    size = len(content)
                    quotes = content.count('"')
                    while quotes % 2 and (more := whole_lines(stream, n_bytes, path, size)):
                        parts.append(more)
                        size = size + len(more)
                        quotes = quotes + more.count('"')
                    content = "".join(parts)
                    yield before, content
                    before += content.count("\n")
        except (UnicodeError, LookupError) as error:
            raise ValueError(
                f"{path} is not {self._asked or 'UTF-8 or Windows-1252'} text ({error}); give "
                "--encoding, such as latin-1, utf-16 or cp1250, or a file of text"
            ) from error

    def pieces(self) -> Iterator[Columns]:
        """Yield the columns of consecutive groups of rows."""
        for before, content in self._blocks(self._begin, LIMITS.piece_bytes):
            columns = None
            if len(content) >= LIMITS.fast_bytes or "polars" in sys.modules:
                columns = by_polars(content, self.form, self._width, self.text)
            if columns is None:
                columns = in_rows(self.path, content, self.form, self._width, self.text, before)
            yield columns[: len(self.header)]

    def line(self, row: int) -> str:
        """Return the place of a row in the file, for messages."""
        for before, content in self._blocks(self._begin, LIMITS.piece_bytes):
            for line, _ in records(self.path, content, self.form):
                if row == 0:
                    return f"line {before + line}"
                row -= 1
        return super().line(row)


def _comments(sample: str, delimiter: str) -> int:
    """Return the number of characters of comments and blank lines at the beginning."""
    start = 0
    while start < len(sample):
        end = sample.find("\n", start) + 1 or len(sample)
        line = sample[start:end]
        if line.strip() and not (line.startswith("#") and delimiter not in line):
            return start
        start = end
    return 0


def delimiter_in(sample: str) -> str:
    """Return the delimiter that splits the first lines most consistently into most cells."""
    lines = [line for line in sample.split("\n", INTAKE.sniffed)[: INTAKE.sniffed] if line.strip()]
    best = ","
    most = (0.0, 0)
    for mark in ",\t;| ":
        counts = []
        with contextlib.suppress(csv.Error):  # too long a cell, which ``records`` reports
            counts = [len(row) for row in csv.reader(lines, delimiter=mark, skipinitialspace=True)]
        if not counts or max(counts) < 2:
            continue
        usual = max(set(counts), key=counts.count)
        agree = counts.count(usual) / len(counts)
        if usual > 1 and (round(agree, 2), usual) > most:
            best = mark
            most = (round(agree, 2), usual)
    return best


def header_in(
    first: Sequence[str], second: Sequence[str] | None, form: TextForm, path: Path
) -> tuple[list[str], int, list[str]]:
    """Return the names of the columns, the number of cells of a row, and notes."""
    cells = list(first)
    width = len(first)
    if not form.header:
        return [f"x{j}" for j in range(width)], width, []
    given = [cell.strip() for cell in cells if cell.strip()]
    counted = [cell.strip() for cell in cells] == [str(j) for j in range(width)]
    # Python reads "nan" and "inf" as numbers, but here they may be names.
    digits = all(form.number(cell) is not None and any(map(str.isdigit, cell)) for cell in given)
    if given and digits and not counted:
        seen = ", ".join(cell[:20] for cell in cells[:3])
        raise ValueError(
            f"the first line of {path} holds only numbers ({seen}, ...), where "
            "column names are expected; add them, or give --no-header (columns are x0, x1, ...)"
        )
    if second is not None and len(second) == width + 1:
        width += 1
        if second[-1].strip():
            cells = ["", *cells]  # R writes no name for the column of row names
        # Otherwise every line ends with the delimiter.
    elif second is not None and len(second) == width - 1 and not cells[-1].strip():
        cells.pop()
        width -= 1
    names, notes = distinct_names(cells)
    return names, width, notes
