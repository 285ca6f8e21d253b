"""From delimited text to columns: numbers with NaN where missing, or text with "".

Text goes through polars where it is installed and the text is plain; what it does not take, or
takes without a word (lines that are short), goes through the standard library, which says what is
wrong and where. Both give the same cells.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import importlib.util
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

#: What stands for a value that is not known, beside "", in any case.
MISSING = frozenset({"na", "n/a", "#n/a", "nan", "null", "?", "<na>", "."})
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
Columns = list[NDArray[Any]]
_PROCESS = os.getpid()


@dataclass(frozen=True)
class TextForm:
    """How a text file is written; "" where it is to be found out.

    ``labels`` : columns of names, which stay as they are written (0007 is not 7).

    Parameters
    ----------
    delimiter : str
        What separates the cells of a text file (default: found out); tab for tabs.
    decimal : str
        Decimal mark of a text file (default: found out).
    encoding : str
        Encoding of a text file, such as latin-1 (default: UTF-8, else cp1252).
    header : bool
        Whether the first line has names (default: found out); if not, columns are x0, x1, ...
    na : sequence of str
        More cells that stand for no value. Empty ones, ".", "?", NA, NaN and null always do.
    """

    delimiter: str = ""
    decimal: Literal[".", ",", ""] = ""
    encoding: str = ""
    header: bool = True
    na: tuple[str, ...] = ()
    labels: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        words = {"tab": "\t", "\\t": "\t", "space": " "}
        cells = [part for text in self.na for part in (text, *text.split(","))]
        vars(self).update(
            delimiter=words.get(self.delimiter, self.delimiter),
            na=tuple(cell.strip().casefold() for cell in cells),
        )

    def is_missing(self, cell: str) -> bool:
        """Whether a cell stands for a value that is not known."""
        folded = cell.strip().casefold()
        return not folded or folded in MISSING or folded in self.na

    def number(self, cell: str) -> float | None:
        """Return a cell as a number; NaN where it is missing, None where it is text.

        A comma is a decimal mark where it is not the delimiter, else it parts thousands.
        """
        # Python reads 1_000 as a number; a data file that has it means a name.
        if "_" in cell:
            return None
        with contextlib.suppress(ValueError):
            return float(cell)
        if self.is_missing(cell):
            return float("nan")
        if self.decimal == ".":
            return None
        plain = cell.strip()
        if self.decimal == "," or self.delimiter != ",":
            found = _DECIMAL_COMMA.fullmatch(plain)
            plain = plain.replace(".", "").replace(",", ".")
        else:
            found = _THOUSANDS.fullmatch(plain)
            plain = plain.replace(",", "")
        return None if found is None else float(plain)


def polars() -> Any:
    """Return the module; None where it is not installed, or of no use here.

    Its threads do not survive a fork: in a child of a process that had loaded it, its next call
    would wait for ever. Such a child does without.
    """
    is_child = os.getpid() != _PROCESS and "polars" in sys.modules
    if is_child or importlib.util.find_spec("polars") is None:
        return None
    return importlib.import_module("polars")


def records(path: Path, content: str, form: TextForm) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which a record ends, and its cells; blank lines left out."""
    # A StringIO would take four bytes a letter.
    lines = io.TextIOWrapper(io.BytesIO(content.encode()), "utf-8", newline="\n")
    csv.field_size_limit(sys.maxsize)
    try:
        reader = csv.reader(
            lines, delimiter=form.delimiter, strict=True, skipinitialspace=form.delimiter == " "
        )
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(
            f"{path} is not a readable table: {error}; give --delimiter, or repair that line"
        ) from error


def in_rows(
    path: Path, content: str, form: TextForm, width: int, text: set[int], lines_before: int
) -> Columns:
    """Return the columns, read with the standard library; raise where a line is no row.

    text : the columns of text; lines_before : lines in front of the content, for messages.
    """
    rows = []
    for line, row in records(path, content, form):
        if len(row) != width:
            raise ValueError(
                f"line {lines_before + line} of {path} has {len(row)} cells, and the others have "
                f"{width}; repair that line, or give --delimiter"
            )
        rows.append(row)
    cells = zip(*rows, strict=True) if rows else [()] * width
    return [column_of(column, form, place in text) for place, column in enumerate(cells)]


def column_of(cells: Sequence[str], form: TextForm, is_text: bool = False) -> NDArray[Any]:
    """Return cells as numbers, where all of them are or are missing, else as text."""
    values = None if is_text else _numbers(cells, form)
    if values is not None:
        return np.array(values, dtype=np.float64)
    # Equal cells are one object: categories take little memory.
    plain = {cell: "" if form.is_missing(cell) else cell.strip() for cell in set(cells)}
    return np.array([plain[cell] for cell in cells], dtype=object)


def _numbers(cells: Sequence[str], form: TextForm) -> list[float] | None:
    """Return cells as numbers; None where one is text."""
    with contextlib.suppress(ValueError):
        if "_" not in "".join(cells):
            return list(map(float, cells))
    found = list[float]()
    for cell in cells:
        value = form.number(cell)
        if value is None:
            return None
        found.append(value)
    return found


def by_polars(content: str, form: TextForm, width: int, text: set[int]) -> Columns | None:
    """Return the columns as polars reads them; None where it cannot, or may read them wrongly."""
    # Of one column, a blank line is a missing value to it.
    pl = None if width == 1 or form.delimiter == " " else polars()
    if pl is None:
        return None
    words = sorted(MISSING.union(form.na))
    nulls = ["", "NaN", *words, *map(str.upper, words)]
    names = list(map(str, range(width)))
    quoted = '"' in content
    raw = content.encode()
    try:
        frame = pl.read_csv(
            raw,
            has_header=False,
            separator=form.delimiter,
            schema={name: pl.String if int(name) in text else pl.Float64 for name in names},
            null_values=nulls,
            quote_char='"' if quoted else None,
        )
    except pl.exceptions.PolarsError:
        return None  # text, or numbers as only we read them
    series = frame.get_columns()
    if series[-1].null_count() and not (
        # Missing values, or lines that are blank or short, which polars fills up?
        not quoted and content.count(form.delimiter) == frame.height * (width - 1)
    ):
        return None
    return [
        column_of(cells.fill_null("").to_list(), form, is_text=True)
        if place in text
        else np.asarray(cells.to_numpy(), dtype=np.float64)
        for place, cells in enumerate(series)
    ]
