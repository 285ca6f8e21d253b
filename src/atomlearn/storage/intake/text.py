"""Delimited text as it comes: any delimiter, decimal mark, encoding and compression.

Small files are read with the standard library. Large ones go through pyarrow where it is
installed, which is many times as fast; both give the same cells.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn.storage.formats.compressed import open_bytes, suffix_of
from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.intake.frame import Frame, distinct_names
from atomlearn.storage.intake.limits import INTAKE

#: What stands for a value that is not known, beside "", in any case.
MISSING = frozenset({"na", "n/a", "#n/a", "nan", "null", "?", "<na>", "."})
_DELIMITERS = {".tsv": "\t", ".tab": "\t"}
_BOMS = ((b"\xff\xfe\x00\x00", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_TAKEN_AS = "the text is not UTF-8; it was read as Windows-1252 (--encoding says other)"
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a text file is written; None and "" where it is to be found out.

    delimiter : one character; decimal : "." or ","; encoding : as Python names it; header :
    whether the first line has names; missing : further cells that stand for no value.
    """

    delimiter: str = ""
    decimal: str = ""
    encoding: str = ""
    header: bool = True
    missing: frozenset[str] = field(default_factory=frozenset)

    def is_missing(self, cell: str) -> bool:
        """Whether a cell stands for a value that is not known."""
        folded = cell.strip().casefold()
        return not folded or folded in MISSING or folded in self.missing


def read_text(path: Path, form: TextForm, fast: bool | None = None) -> Frame:
    """Return the frame of a text file; ``fast``: through pyarrow, None: where it is worth it."""
    head = _head(path)
    found = form.encoding or _encoding(head)
    try:
        frame = _read(path, replace(form, encoding=found), head, fast)
        if found == "cp1252" and not form.encoding:
            frame.notes.append(_TAKEN_AS)
        return frame
    except UnicodeDecodeError as error:
        if form.encoding:
            raise ValueError(
                f"{path} is not {form.encoding} text ({error.reason} at byte {error.start}); give "
                "--encoding, such as latin-1, utf-16 or cp1250"
            ) from error
    frame = _read(path, replace(form, encoding="cp1252"), head, fast)
    frame.notes.append(_TAKEN_AS)
    return frame


def _read(path: Path, form: TextForm, head: bytes, fast: bool | None) -> Frame:
    sample = head.decode(form.encoding, errors="replace")
    if not form.delimiter:
        form = replace(form, delimiter=_DELIMITERS.get(suffix_of(path)) or delimiter_in(sample))
    large = path.stat().st_size >= INTAKE.fast_bytes if fast is None else fast
    if large:
        from atomlearn.storage.intake.fast_text import read_fast

        frame = read_fast(path, form, sample)
        if frame is not None:
            return frame
    return _slowly(path, form)


def _head(path: Path) -> bytes:
    with open_bytes(path) as stream:
        head: bytes = stream.read(INTAKE.head_bytes)
    return head


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
    return "utf-8-sig"


def delimiter_in(sample: str) -> str:
    """Return the delimiter that cuts the first lines into the most cells, as many in each."""
    lines = [line for line in sample.splitlines()[: INTAKE.sniffed] if line.strip()][:-1]
    lines = lines or sample.splitlines()[:1]
    best, most = ",", (0.0, 0)
    for mark in ",\t;| ":
        counts = [len(row) for row in csv.reader(lines, delimiter=mark, skipinitialspace=True)]
        if not counts or max(counts) < 2:
            continue
        usual = max(set(counts), key=counts.count)
        agree = counts.count(usual) / len(counts)
        if usual > 1 and (round(agree, 2), usual) > most:
            best, most = mark, (round(agree, 2), usual)
    return best


def lines_of(path: Path, form: TextForm) -> Iterator[str]:
    """Yield the lines of the text, those of comments in front of the header left out."""
    with open_bytes(path) as raw, io.TextIOWrapper(raw, form.encoding, newline="") as stream:
        begun = False
        while line := stream.readline(LIMITS.longest_line):
            if not begun and line.startswith("#") and form.delimiter not in line:
                yield "\n"  # so that lines are counted as in the file
                continue
            begun = begun or bool(line.strip())
            yield line


def records(path: Path, form: TextForm) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which a record ends, and its cells; blank lines left out."""
    csv.field_size_limit(LIMITS.longest_cell)
    spaces = form.delimiter == " "
    try:
        reader = csv.reader(
            lines_of(path, form), delimiter=form.delimiter, strict=True, skipinitialspace=spaces
        )
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(
            f"{path} is not a readable table: {error}; give --delimiter, or repair that line"
        ) from error


def header_in(
    first: Sequence[str], second: Sequence[str] | None, form: TextForm, path: Path
) -> tuple[list[str], int, list[str]]:
    """Return the names of the columns, how many cells a row has, and notes."""
    cells = list(first)
    if not form.header:
        return [f"x{j}" for j in range(len(cells))], len(cells), []
    numeric = all(_number(cell, form) is not None for cell in cells if cell.strip())
    counted = [cell.strip() for cell in cells] == [str(j) for j in range(len(cells))]
    if numeric and not counted and any(cell.strip() for cell in cells):
        raise ValueError(
            f"the first line of {path} holds only numbers ({', '.join(cells[:3])}, ...), where "
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


def _number(cell: str, form: TextForm) -> float | None:
    """Return a cell as a number; NaN where it is missing, None where it is text."""
    try:
        # Python reads 1_000 as a number; a data file that has it means a name.
        return float(cell) if "_" not in cell else None
    except ValueError:
        return float("nan") if form.is_missing(cell) else None


def _values(cells: list[str], form: TextForm) -> tuple[list[float], list[int]]:
    """Return cells as numbers, and the places of those that are text."""
    try:
        if "_" not in "".join(cells):
            return list(map(float, cells)), []
    except ValueError:
        pass
    found = [_number(cell, form) for cell in cells]
    strays = [place for place, value in enumerate(found) if value is None]
    return [0.0 if value is None else value for value in found], strays


def _slowly(path: Path, form: TextForm) -> Frame:
    """Return the frame, read with the standard library; again where a column turns out text."""
    text: set[int] = set()
    while True:
        rows = records(path, form)
        first = next(rows, None)
        if first is None:
            raise ValueError(f"{path} is empty; expected a header line with column names")
        second = next(rows, None)
        header, width, notes = header_in(first[1], second and second[1], form, path)
        body = [] if second is None else [second]
        if not form.header:
            body.insert(0, first)
        found = _collect(path, form, header, width, chain_of(body, rows), text)
        if found is not None:
            found.notes.extend(notes)
            return decimals(found, form)


def chain_of(
    body: list[tuple[int, list[str]]], rows: Iterable[tuple[int, list[str]]]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that were read ahead, then the others."""
    yield from body
    yield from rows


def _collect(
    path: Path,
    form: TextForm,
    header: list[str],
    width: int,
    rows: Iterable[tuple[int, list[str]]],
    text: set[int],
) -> Frame | None:
    """Return the frame; None where more columns turned out to be text, which ``text`` then has."""
    numeric = [j for j in range(len(header)) if j not in text]
    texts: dict[int, list[str]] = {j: [] for j in sorted(text)}
    numbers, lines, stray = array("d"), array("q"), set[int]()
    for line, row in rows:
        if len(row) != width:
            raise ValueError(
                f"line {line} of {path} has {len(row)} cells, and the others have {width}; repair "
                "that line, or give --delimiter"
            )
        row = row[: len(header)]
        values, strays = _values(row if not text else [row[j] for j in numeric], form)
        numbers.extend(values)
        stray.update(numeric[place] for place in strays)
        for j, cells in texts.items():
            cell = row[j].strip()
            cells.append("" if form.is_missing(cell) else cell)
        lines.append(line)
    if stray:
        text |= stray
        return None
    if not lines:
        raise ValueError(f"{path} has a header but no data; expected one line a sample")
    flat = np.frombuffer(numbers, dtype=np.float64) if numbers else np.zeros(0)
    return Frame(
        path,
        header,
        {header[j]: slot for slot, j in enumerate(numeric)},
        flat.reshape(len(lines), len(numeric)).copy(),
        {header[j]: np.array(cells, dtype=object) for j, cells in texts.items()},
        len(lines),
        line=lambda row: f"line {lines[row]}",
    )


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
            pattern.fullmatch(cell) or _is_plain(cell) for cell in known
        ):
            continue
        change = _from_comma if comma else _from_thousands
        found[name] = np.array([change(cell) if cell else np.nan for cell in cells.tolist()])
    if not found:
        return frame
    kind = "decimal commas" if form.delimiter != "," else "commas between thousands"
    frame.notes.append(f"{len(found)} columns have {kind} (--decimal . keeps them as text)")
    texts = {name: cells for name, cells in frame.texts.items() if name not in found}
    numeric = [name for name in frame.header if name not in texts]
    numbers = np.empty((frame.n_rows, len(numeric)), order="F")
    for place, name in enumerate(numeric):
        numbers[:, place] = found[name] if name in found else frame.values(name)
    slots = {name: place for place, name in enumerate(numeric)}
    return replace(frame, slots=slots, numbers=numbers, texts=texts)


def _is_plain(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _from_comma(cell: str) -> float:
    return float(cell.replace(".", "").replace(",", ".")) if "," in cell else float(cell)


def _from_thousands(cell: str) -> float:
    return float(cell.replace(",", ""))
