"""Delimited text as it comes: any delimiter, decimal mark, encoding and compression."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import (
    COMPRESSED,
    open_bytes,
    rest_of_line,
    suffix_of,
)
from atomlearn.storage.formats.held import BELIEVED, fits, free_memory
from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.intake.at_once import read_at_once
from atomlearn.storage.intake.cells import Block, Columns, TextForm, number_of, parsed, records
from atomlearn.storage.intake.frame import Frame, distinct_names, frame_of_columns
from atomlearn.storage.intake.kinds import is_code, is_id_name
from atomlearn.storage.intake.limits import INTAKE

_DELIMITERS = {".tsv": "\t", ".tab": "\t"}
_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_TAKEN_AS = "the text is not UTF-8; it was read as Windows-1252 (--encoding says other)"
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


def looks_delimited(suffix: str, line: str) -> bool:
    """Tell whether a text file with this first line is a table."""
    return suffix in (".txt", ".dat", ".data") and any(mark in line.strip() for mark in ",\t;| ")


def read_text(path: Path, form: TextForm) -> Frame:
    """Return the frame of a text file."""
    encoding = form.encoding or "cp1252"
    try:
        try:
            return TextFile(path, form).frame()
        except UnicodeDecodeError:
            if form.encoding:
                raise
        frame = TextFile(path, replace(form, encoding=encoding)).frame()
    except UnicodeError as error:
        raise ValueError(
            f"{path} is not {encoding} text ({error}); give --encoding, such as latin-1, utf-16 or "
            "cp1250, or a file of text"
        ) from error
    frame.notes.append(_TAKEN_AS)
    return frame


class Recoded:
    """The bytes of a text in UTF-8, whatever it is written in, without more memory than asked for.

    The one of ``codecs`` asks for as many bytes as a line may have before it looks for its end.
    """

    def __init__(self, raw: Any, encoding: str, newline: str) -> None:
        self._text = io.TextIOWrapper(raw, encoding, newline=newline)

    def read(self, size: int) -> bytes:
        """Return the next so many letters."""
        return self._text.read(size).encode("utf-8")

    def readline(self, longest: int) -> bytes:
        """Return the rest of the line."""
        return self._text.readline(longest).encode("utf-8")


class TextFile:
    """A text file: how it is written, its header, and its rows a piece at a time.

    form : complete; header : names of the columns; notes : what was done to them; text : the
    columns that hold text, as far as was seen.
    """

    def __init__(self, path: Path, form: TextForm) -> None:
        self.path, self.notes, self.text = path, list[str](), set[int]()
        with open_bytes(path) as stream:
            head: bytes = stream.read(INTAKE.head_bytes)
        encoding = form.encoding or _encoding(head)
        try:
            "".encode(encoding)  # Some encodings are none of text.
        except LookupError as error:
            raise ValueError(
                f"there is no encoding {encoding!r}; give --encoding, such as latin-1 or utf-16"
            ) from error
        if encoding == "cp1252" and not form.encoding:
            self.notes.append(_TAKEN_AS)
        sample = head.decode(encoding, errors="replace")
        self._old_mac = "\r" in sample and "\n" not in sample
        delimiter = form.delimiter or _DELIMITERS.get(suffix_of(path)) or delimiter_in(sample)
        self.form = replace(form, encoding=encoding, delimiter=delimiter)
        rows = records(path, self._head_lines(), self.form)
        first = next(rows, None)
        if first is None:
            raise ValueError(f"{path} is empty; expected a header line with column names")
        # Where the rows begin: known once the header was taken, and no line after it.
        self.begin, self._lines_before = self._at if form.header else self._header_at
        some = [row for _, row in itertools.islice(rows, INTAKE.sniffed)]
        self.header, self._width, notes = header_in(first[1], some[0] if some else None, form, path)
        self.notes += notes
        if form.header:
            self.text |= {place for place in range(len(self.header)) if self._names(place, some)}

    def _names(self, place: int, rows: Sequence[Sequence[str]]) -> bool:
        """Return whether a column holds names, which are no numbers though they may look so."""
        name = self.header[place]
        cells = (row[place].strip() for row in rows if place < len(row))
        return name in self.form.labels or (is_id_name(name) and any(map(is_code, cells)))

    def _head_lines(self) -> Iterator[str]:
        """Yield lines, those of comments in front left out; note where each begins and ends."""
        position, number, begun, left = 0, 0, False, INTAKE.sniffed
        for block in self._blocks(0, INTAKE.head_bytes):
            left -= begun  # A block has a line at least: what follows so many is not looked at.
            if not left:
                return
            for line in block.content.splitlines(keepends=True):
                start = position
                position, number = position + len(line), number + 1
                words = line.decode("utf-8")
                if not begun and words.startswith("#") and self.form.delimiter not in words:
                    yield "\n"  # so that lines are counted as in the file
                    continue
                if not begun and words.strip():
                    begun, self._header_at = True, (start, number - 1)
                self._at = position, number
                yield words

    def _blocks(self, position: int, n_bytes: int) -> Iterator[Block]:
        """Yield whole lines from a byte of the text, counted in UTF-8, on; no quote is cut."""
        plain = self.form.encoding.replace("_", "-") in ("utf-8", "utf-8-sig")
        in_place = plain and self.path.suffix.lower() not in COMPRESSED
        # A read takes the memory it asks for, whatever comes: no more than the file can hold.
        if held := self.path.stat().st_size:
            n_bytes = min(n_bytes, max(held, 4096) * (1 if in_place else 64))
        with open_bytes(self.path) as raw:
            stream: Any = raw
            start = position
            if plain:
                raw.seek(position + (3 if self.form.encoding == "utf-8-sig" else 0))
                position = 0
            else:
                stream = Recoded(raw, self.form.encoding, "" if self._old_mac else "\n")
            size = n_bytes
            while True:
                if in_place:  # where the line ends is looked up first: nothing is put together
                    begin = raw.tell()
                    raw.seek(n_bytes, io.SEEK_CUR)
                    size = n_bytes + len(rest_of_line(raw, self.path, 0))
                    raw.seek(begin)
                content = stream.read(size)
                if not content:
                    break
                if not in_place:
                    content += rest_of_line(stream, self.path, len(content))
                if content.count(b'"') % 2:
                    content += self._quoted(stream)
                if position:
                    content, position = content[position:], max(position - len(content), 0)
                if self._old_mac:
                    content = content.replace(b"\r", b"\n")
                if not content.isascii():
                    content.decode("utf-8")
                yield Block(self.path, content, partial(self._lines_until, start))
                start += len(content)

    def _quoted(self, stream: Any) -> bytes:
        """Return the lines up to the one in which a quote ends."""
        lines, size, is_open = list[bytes](), 0, True
        most = min(LIMITS.longest_cell, max(free_memory(), BELIEVED.granted) / LIMITS.parsed)
        while is_open and (line := rest_of_line(stream, self.path, 0)):
            lines.append(line)
            size += len(line)
            is_open = line.count(b'"') % 2 == 0
            if size > most:
                raise ValueError(
                    f"{self.path} has a quote that does not end within {size:,} bytes; repair it"
                )
        return b"".join(lines)

    def pieces(self, position: int, n_bytes: int) -> Iterator[tuple[Columns, int]]:
        """Yield columns of some rows, and the position after them, from a position on."""
        position = position or self.begin
        for block in self._blocks(position, n_bytes):
            position += len(block.content)
            columns = parsed(block, self.form, self._width, self.text)
            yield columns[: len(self.header)], position

    def learned(self, columns: Columns) -> bool:
        """Take note of columns that turn out to be text; whether there were any."""
        new = {place for place, cells in enumerate(columns) if cells.dtype == object} - self.text
        self.text |= new
        return bool(new)

    def frame(self) -> Frame:
        """Return all rows; columns that turn out to be text late are read once more."""
        whole = self._at_once()
        if whole is not None:
            return decimals(whole, self.form)
        again, parts = True, list[Columns]()
        while again:
            again, parts, held = False, [], 0
            for columns, _ in self.pieces(0, INTAKE.block_bytes):
                again = self.learned(columns) or again
                if not again:
                    parts.append(columns)
                    # They are copied side by side in the end.
                    held += sum(column.nbytes for column in columns)
                    fits(self.path, "its table", held)
        frame = self.frame_of(parts)
        if frame.n_rows == 0:
            raise ValueError(f"{self.path} has a header but no data; expected one line a sample")
        return decimals(frame, self.form)

    def _at_once(self) -> Frame | None:
        """Return all rows as one call reads them; None where the file is small or not plain."""
        packed = self.path.suffix.lower() in COMPRESSED or self._old_mac
        plain = self.form.encoding.replace("_", "-") == "utf-8" and not packed
        if not plain or self.path.stat().st_size < INTAKE.whole_bytes:
            return None
        fits(self.path, "its text, parsed,", LIMITS.parsed * self.path.stat().st_size)
        block = next(self._blocks(self.begin, INTAKE.fast_bytes))
        self.learned(parsed(block, self.form, self._width, self.text)[: len(self.header)])
        before = self._lines_before
        found = read_at_once(self.path, self.form, self._width, self.text, before, block.content)
        return None if found is None else self._frame(*found)

    def _frame(self, numbers: NDArray[np.float64], cells: dict[int, NDArray[Any]]) -> Frame:
        """Return the frame of numbers and text, columns of a delimiter at the end left out."""
        columns = [place for place in range(len(self.header)) if place not in cells]
        return Frame(
            self.path,
            self.header,
            {self.header[place]: slot for slot, place in enumerate(columns)},
            numbers[:, : len(columns)],
            {self.header[place]: held for place, held in cells.items() if place < len(self.header)},
            len(numbers),
            list(self.notes),
            self.line,
        )

    def frame_of(self, parts: list[Columns]) -> Frame:
        """Return the frame of pieces, which are given up as they are copied."""
        n_rows = sum(part[0].size for part in parts)
        numeric = [place for place in range(len(self.header)) if place not in self.text]
        numbers = np.empty((n_rows, len(numeric)), order="F")
        texts: dict[int, list[Any]] = {place: [] for place in sorted(self.text)}
        start = 0
        parts.reverse()
        while parts:
            part = parts.pop()
            stop = start + part[0].size
            for slot, place in enumerate(numeric):
                numbers[start:stop, slot] = part[place]
            for place, cells in texts.items():
                cells.append(part[place])
            start = stop
        return self._frame(numbers, {p: np.concatenate([[], *cells]) for p, cells in texts.items()})

    def line(self, row: int) -> str:
        """Return where a row stands, for messages."""
        for block in self._blocks(self.begin, INTAKE.block_bytes):
            lines = io.StringIO(block.content.decode("utf-8"), newline="")
            for line, _ in records(self.path, lines, self.form):
                if row == 0:
                    return f"line {block.before() + line}"
                row -= 1
        return f"row {row + 1}"

    def _lines_until(self, position: int) -> int:
        """Return the number of lines in front of a byte of the text."""
        lines, at = self._lines_before, self.begin
        for block in self._blocks(self.begin, INTAKE.block_bytes):
            if at >= position:
                break
            lines, at = lines + block.content.count(b"\n"), at + len(block.content)
        return lines


def _encoding(head: bytes) -> str:
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    try:
        # A letter may be cut in two at the end of the piece.
        head[: max(len(head) - 4, 0)].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 8:
            return "cp1252"
    return "utf-8"


def delimiter_in(sample: str) -> str:
    """Return the delimiter that cuts the first lines into the most cells, as many in each."""
    lines = [line for line in sample.splitlines()[: INTAKE.sniffed] if line.strip()][:-1]
    lines = lines or sample.splitlines()[:1]
    best, most = ",", (0.0, 0)
    for mark in ",\t;| ":
        counts = []
        with contextlib.suppress(csv.Error):  # a cell too long for any table, as ``records`` says
            counts = [len(row) for row in csv.reader(lines, delimiter=mark, skipinitialspace=True)]
        if not counts or max(counts) < 2:
            continue
        usual = max(set(counts), key=counts.count)
        agree = counts.count(usual) / len(counts)
        if usual > 1 and (round(agree, 2), usual) > most:
            best, most = mark, (round(agree, 2), usual)
    return best


def header_in(
    first: Sequence[str], second: Sequence[str] | None, form: TextForm, path: Path
) -> tuple[list[str], int, list[str]]:
    """Return the names of the columns, how many cells a row has, and notes."""
    cells = list(first)
    if not form.header:
        return [f"x{j}" for j in range(len(cells))], len(cells), []
    numeric = all(number_of(cell, form) is not None for cell in cells if cell.strip())
    counted = [cell.strip() for cell in cells] == [str(j) for j in range(len(cells))]
    # "nan" and "inf" are numbers to Python, but may well be names.
    digits = all(any(map(str.isdigit, cell)) for cell in cells if cell.strip())
    if numeric and digits and not counted and any(cell.strip() for cell in cells):
        seen = ", ".join(cell[:20] for cell in cells[:3])
        raise ValueError(
            f"the first line of {path} holds only numbers ({seen}, ...), where "
            "column names are expected; add them, or give --no-header (columns are x0, x1, ...)"
        )
    width = len(cells)
    if second is not None and len(second) == width + 1:
        if second[-1].strip() == "":
            width += 1  # every line ends with the delimiter
        else:
            cells, width = ["", *cells], width + 1  # R leaves the name of row names out
    elif second is not None and len(second) == width - 1 and not cells[-1].strip():
        cells.pop()
        width -= 1
    names, notes = distinct_names(cells)
    return names, width, notes


def decimals(frame: Frame, form: TextForm) -> Frame:
    """Turn columns of text that are numbers with a decimal comma (or 1,000s) into numbers."""
    found: dict[str, Any] = {}
    for name, cells in frame.texts.items():
        known = [cell for cell in cells.tolist() if cell]
        if not known or form.decimal == ".":
            continue
        comma = form.decimal == "," or form.delimiter != ","
        plain = [cell for cell in known if "," not in cell]
        pattern = _COMMA if comma else _THOUSANDS
        if len(plain) == len(known) or not all(
            pattern.fullmatch(cell) or number_of(cell, TextForm()) is not None for cell in known
        ):
            continue
        change = _from_comma if comma else _from_thousands
        found[name] = np.array([change(cell) if cell else np.nan for cell in cells.tolist()])
    if not found:
        return frame
    kind = "decimal commas" if form.delimiter != "," else "commas between thousands"
    frame.notes.append(f"{len(found)} columns have {kind} (--decimal . keeps them as text)")
    columns = {name: found[name] if name in found else frame.held(name) for name in frame.header}
    return replace(frame_of_columns(frame.path, columns, frame.notes), line=frame.line)


def _from_comma(cell: str) -> float:
    return float(cell.replace(".", "").replace(",", ".")) if "," in cell else float(cell)


def _from_thousands(cell: str) -> float:
    return float(cell.replace(",", ""))
