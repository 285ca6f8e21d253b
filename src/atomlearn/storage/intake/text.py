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

from atomlearn.storage.formats.compressed import (
    UTF8,
    encoding_of,
    open_bytes,
    open_text,
    suffix_of,
    whole_lines,
)
from atomlearn.storage.formats.held import LIMITS
from atomlearn.storage.intake.cells import Columns, TextForm, by_polars, in_rows, records
from atomlearn.storage.intake.columns import INTAKE
from atomlearn.storage.intake.frame import TableFile, distinct_names, names_of_lines
from atomlearn.storage.intake.kinds import is_code, is_id_name

#: Delimiters of endings that say it.
_DELIMITERS = {".tsv": "\t", ".tab": "\t"}
#: Number of lines above the names of the columns, by the first four characters of the file.
_ABOVE = {"#1.2": 2, "#1.3": 2}  # of a .gct: its version, and its numbers of rows and columns


def _as_windows(error: Any) -> tuple[str, int]:
    """Return the bytes of a decoding error as Windows text, and the position after them.

    It is the handler of bytes that are no UTF-8: Windows-1252 is the most frequent alternative.
    """
    return error.object[error.start : error.end].decode("cp1252"), error.end


codecs.register_error("windows-1252", _as_windows)


def looks_delimited(suffix: str, line: str) -> bool:
    """Return whether a text file with this ending and this first line is a table."""
    return suffix in (".txt", ".dat", ".data") and any(mark in line.strip() for mark in ",\t;| ")


class TextFile(TableFile):
    """A table in a text file with delimited cells.

    Encoding, delimiter and header are detected from the first lines; the attribute ``form`` has the
    detected encoding and delimiter. The parameters are those of ``TableFile``. ``_begin`` is the
    number of characters above the rows, and ``_width`` the number of cells in a row.
    """

    def __init__(self, path: Path, form: TextForm, sheet: str | None = None) -> None:
        """Open the file ``path``, and detect encoding, delimiter, header and columns of labels.

        Fields of ``form`` that are not empty are not detected. A text has no ``sheet``.
        """
        super().__init__(path, form, sheet)
        self._given_encoding = form.encoding
        encoding = form.encoding or self._encoding()
        self.form = replace(form, encoding=encoding)
        # ``sample`` is the text from which the delimiter is detected.
        above = self._text_above()
        self._begin = len(above)
        _, sample = next(self._blocks(self._begin, LIMITS.head_bytes), (0, ""))
        delimiter = form.delimiter or _DELIMITERS.get(suffix_of(path)) or delimiter_in(sample)
        self.form = replace(self.form, delimiter=delimiter)
        # The header and the first rows, after comments. ``position`` is the number of characters
        # of the sample above the header; below, above the rows.
        position = 0 if above else _comments(sample, delimiter)
        rows = records(path, sample[position:], self.form)
        n_lines, first = self._header_of(rows)
        sample_rows = list(islice(rows, INTAKE.sniffed))
        second = sample_rows[0][1] if sample_rows else None
        self.header, self._width, notes = header_in(first, second, form, path)
        self.notes += notes
        self._refuse_title(sample_rows, above.count("\n") + sample[:position].count("\n"))
        if form.header:
            for _ in range(n_lines):  # the rows begin after the header
                position = sample.find("\n", position) + 1 or len(sample)
            cells = [row for _, row in sample_rows]
            columns = range(len(self.header))
            self.text |= {index for index in columns if self._has_labels(index, cells)}
        # Columns with a comma in a number get a note, because the comma may mean either.
        self._begin += position
        commas = {
            index
            for _, row in sample_rows
            for index, cell in enumerate(row)
            if "," in cell and self.form.number(cell) is not None
        }
        if commas:
            kind = "decimal commas" if delimiter != "," else "commas between thousands"
            self.notes.append(f"{len(commas)} columns have {kind} (--decimal . keeps them as text)")

    def _text_above(self) -> str:
        """Return the lines above the names of the columns.

        ``--header-row`` or the first four characters of the file say how many there are; else
        there are none.
        """
        header_lines = self.form.header_lines
        with self._readable(), open_text(self.path, self.form.encoding, self._errors()) as stream:
            count = header_lines[0] - 1 if header_lines else _ABOVE.get(stream.read(4), 0)
            stream.seek(0)
            above = "".join(islice(stream, count))
        if above.count("\n") < count:
            raise ValueError(f"{self.path} has no line {count + 1}, which --header-row asks for")
        return above

    def _header_of(self, rows: Iterator[tuple[int, list[str]]]) -> tuple[int, list[str]]:
        """Return the number of lines up to the last one with names of columns, and the names.

        ``rows`` yields the number of each line, counted from the first one with names, and its
        cells. With ``--header-row 2,3`` the names are joined from two lines.
        """
        n_lines, first = next(rows, (0, []))
        if n_lines == 0:
            raise ValueError(f"{self.path} is empty; expected a header line with column names")
        lines = self.form.header_lines
        if len(lines) < 2:
            return n_lines, first
        # The cells of each line up to the last one with names, by its number in the file.
        title_lines = {lines[0]: first}
        while n_lines <= lines[-1] - lines[0]:
            n_lines, row = next(rows, (n_lines + 1, []))
            title_lines[lines[0] + n_lines - 1] = row
        return n_lines, names_of_lines([title_lines.get(line, []) for line in lines])

    def _refuse_title(self, rows: Sequence[tuple[int, Sequence[str]]], n_lines: int) -> None:
        """Refuse a first line that has fewer cells than most lines, such as a title.

        ``rows`` are the next lines, as their numbers and cells; ``n_lines`` is the number of lines
        above the first line.
        """
        widths = [len(row) for _, row in rows]
        usual = max(set(widths), key=widths.count, default=0)
        if self.form.header and self._width < usual and 2 * widths.count(usual) >= len(widths):
            line = n_lines + next(line for line, row in rows if len(row) == usual)
            raise ValueError(
                f"line {n_lines + 1} of {self.path} has {self._width} cells, and most lines have "
                f"{usual}. If it is a title above the names of columns, type --header-row {line}"
            )

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        """Raise ValueError with a remedy if the body of this ``with`` finds bytes that are no text.

        It depends on the encoding of the file whether bytes are text.
        """
        try:
            yield
        except (UnicodeError, LookupError) as error:
            raise ValueError(
                f"{self.path} is not {self._given_encoding or 'UTF-8 or Windows-1252'} text "
                f"({error}); give --encoding, such as latin-1, utf-16 or cp1250, or a file of text"
            ) from error

    def _errors(self) -> str:
        """Return the name of Python's error handler for bytes that are no text."""
        return "windows-1252" if self.form.encoding == UTF8 else "strict"

    def _encoding(self) -> str:
        """Return the detected text encoding of the file; note if it is Windows-1252."""
        encoding = encoding_of(self.path)
        if encoding != UTF8:
            return encoding
        with open_bytes(self.path) as stream:
            head = stream.read(LIMITS.head_bytes)
        try:
            # The piece may end within the bytes of a character.
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError:
            self.notes.append(
                "the text is not UTF-8; it was read as Windows-1252 (--encoding says other)"
            )
        return UTF8

    def _has_labels(self, column: int, rows: Sequence[Sequence[str]]) -> bool:
        """Return whether the cells of a column are labels, which may look like numbers (0007).

        ``column`` is its number, and ``rows`` are the first rows of cells.
        """
        name = self.header[column]
        cells = (row[column].strip() for row in rows if column < len(row))
        return name in self.form.labels or (is_id_name(name) and any(map(is_code, cells)))

    def _blocks(self, begin: int, n_bytes: int) -> Iterator[tuple[int, str]]:
        """Yield blocks of whole lines, each after the number of lines before it.

        ``begin`` is the number of characters to skip, ``n_bytes`` the size of a block. A block does
        not end within quotes, because a quoted cell may have line ends.
        """
        path = self.path
        with self._readable(), open_text(path, self.form.encoding, self._errors()) as stream:
            n_lines = stream.read(begin).count("\n")
            while content := whole_lines(stream, n_bytes, path):
                pieces = [content]
                n_characters = len(content)
                # An odd number of quotes means that the last one is open.
                quotes = content.count('"')
                while quotes % 2 and (lines := whole_lines(stream, n_bytes, path, n_characters)):
                    pieces.append(lines)
                    n_characters = n_characters + len(lines)
                    quotes = quotes + lines.count('"')
                content = "".join(pieces)
                yield n_lines, content
                n_lines += content.count("\n")

    def pieces(self) -> Iterator[Columns]:
        """Yield the columns of consecutive groups of rows."""
        for n_lines, content in self._blocks(self._begin, LIMITS.piece_bytes):
            # Polars is faster, but for short text importing it takes longer than it saves.
            columns = None
            if len(content) >= LIMITS.fast_bytes or "polars" in sys.modules:
                columns = by_polars(content, self.form, self._width, self.text)
            if columns is None:
                columns = in_rows(self.path, content, self.form, self._width, self.text, n_lines)
            yield columns[: len(self.header)]

    def line(self, row: int) -> str:
        """Return the place of a row (counted from 0) in the file, for messages."""
        for n_lines, content in self._blocks(self._begin, LIMITS.piece_bytes):
            for line, _ in records(self.path, content, self.form):
                if row == 0:
                    return f"line {n_lines + line}"
                row -= 1
        return super().line(row)


def _comments(sample: str, delimiter: str) -> int:
    """Return the number of characters of comments and blank lines at the start of ``sample``.

    A line that begins with # is no comment if it contains the delimiter: it may be the header.
    """
    start = 0
    while start < len(sample):
        end = sample.find("\n", start) + 1 or len(sample)
        line = sample[start:end]
        if line.strip() and not (line.startswith("#") and delimiter not in line):
            return start
        start = end
    return 0


def delimiter_in(sample: str) -> str:
    """Return the delimiter that splits the first lines of ``sample`` most consistently.

    For each candidate, the usual number of cells of a line is found. The best candidate has the
    largest share of lines with this number; of several, the one with most cells.
    """
    lines = [line for line in sample.split("\n", INTAKE.sniffed)[: INTAKE.sniffed] if line.strip()]
    best = ","
    best_rank = (0.0, 0)
    for mark in ",\t;| ":
        counts = []
        with contextlib.suppress(csv.Error):  # the cell is too long, which ``records`` reports
            counts = [len(row) for row in csv.reader(lines, delimiter=mark, skipinitialspace=True)]
        if not counts or max(counts) < 2:
            continue
        usual = max(set(counts), key=counts.count)
        share = counts.count(usual) / len(counts)
        if usual > 1 and (round(share, 2), usual) > best_rank:
            best = mark
            best_rank = (round(share, 2), usual)
    return best


def header_in(
    first: Sequence[str], second: Sequence[str] | None, form: TextForm, path: Path
) -> tuple[list[str], int, list[str]]:
    """Return the names of the columns, the number of cells of a row, and notes.

    Parameters
    ----------
    first : sequence of str
        Cells of the first line.
    second : sequence of str, optional
        Cells of the second line, if there is one.
    form : TextForm
        How the text is written; without a header, columns are called x0, x1, ...
    path : Path
        The file, for messages.
    """
    cells = list(first)
    width = len(first)
    if not form.header:
        return [f"x{j}" for j in range(width)], width, []
    # A first line of numbers has no names, unless it counts the columns: 0, 1, 2, ...
    titles = [cell.strip() for cell in cells if cell.strip()]
    is_counted = [cell.strip() for cell in cells] == [str(j) for j in range(width)]
    # Python reads "nan" and "inf" as numbers, but here they may be names.
    numbers = [form.number(cell) is not None and any(map(str.isdigit, cell)) for cell in titles]
    if titles and all(numbers) and not is_counted:
        seen = ", ".join(cell[:20] for cell in cells[:3])
        raise ValueError(
            f"the first line of {path} holds only numbers ({seen}, ...), where "
            "column names are expected; add them, or give --no-header (columns are x0, x1, ...)"
        )
    # A row with one cell more than the header: R writes no name for the column of row names. If its
    # last cell is blank, rows end with the delimiter. A row with one cell less: the header ends
    # with the delimiter.
    if second is not None and len(second) == width + 1:
        width += 1
        if second[-1].strip():
            cells = ["", *cells]
    elif second is not None and len(second) == width - 1 and not cells[-1].strip():
        cells.pop()
        width -= 1
    names, notes = distinct_names(cells)
    return names, width, notes
