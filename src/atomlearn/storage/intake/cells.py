"""Parse delimited text into columns: of numbers, NaN if missing, or of text, "" if missing.

If polars is installed, it reads plain text. It does not parse everything, and it silently accepts
short lines; these cases are left to the standard library, which reports the fault and its line.
Both give the same cells.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.intake.written import numbers_written, without_limits

#: Texts that mean a missing value, in addition to "", in upper or lower case.
MISSING = frozenset({"na", "n/a", "#n/a", "nan", "null", "?", "<na>", "."})
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
#: Columns of a piece of a table, in the order of its header.
Columns = list[NDArray[Any]]
#: The process that loaded this module; child processes have other numbers.
_PROCESS = os.getpid()


@dataclass(frozen=True)
class TextForm:
    """The form of a text file; "" means that it is detected.

    The field ``labels``, which is no option of the command line, has the names of columns whose
    cells are kept as they are written (0007 is not 7).

    Parameters
    ----------
    delimiter : str
        Separator of the cells of a text file (default: detected); tab for tabs.
    decimal : str
        Decimal mark of a text file (default: detected).
    encoding : str
        Encoding of a text file, such as latin-1 (default: UTF-8, else cp1252).
    header : bool
        Whether the first line has names (default: detected); if not, columns are x0, x1, ...
    header_row : lines
        Line of the names of the columns, counted from 1, if it is not the first; 2,3 joins the
        names of two lines. Lines above it are not read.
    na : sequence of str
        More cells that mean a missing value, such as --na=-9,unknown. Empty cells and the cells
        ".", "?", NA, NaN and null always do.
    limits : bool
        Read limits of detection, such as <0.5 and >90, as these numbers.
    """

    delimiter: str = ""
    decimal: Literal[".", ",", ""] = ""
    encoding: str = ""
    header: bool = True
    header_row: str = ""
    na: tuple[str, ...] = ()
    limits: bool = False
    labels: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Replace words for delimiters, split lists in ``na``, and check ``header_row``."""
        words = {"tab": "\t", "\\t": "\t", "space": " "}
        texts = (self.na,) if isinstance(self.na, str) else self.na
        # A text with commas is kept as well, because a cell may have commas.
        cells = [part for text in texts for part in (text, *text.split(","))]
        lines = self.header_row.split(",") if self.header_row else []
        if not all(line.strip().isdecimal() and int(line) for line in lines):
            raise ValueError(
                f"--header-row must be the number of a line, or two such as 1,2; got "
                f"{self.header_row!r}"
            )
        vars(self).update(
            delimiter=words.get(self.delimiter, self.delimiter),
            na=tuple(cell.strip().casefold() for cell in cells),
        )

    def is_missing(self, cell: str) -> bool:
        """Return whether the text of a cell means a missing value."""
        folded = cell.strip().casefold()
        return not folded or folded in MISSING or folded in self.na

    @property
    def header_lines(self) -> list[int]:
        """The lines of the file that have names of columns, from 1; [] if none was given."""
        return sorted(map(int, self.header_row.split(","))) if self.header_row else []

    @property
    def meanings(self) -> dict[str, str]:
        """The settings ``na`` and ``limits`` as text, stored in a model to read new rows alike."""
        options = {"na": ",".join(self.na)} if self.na else {}
        return options | ({"limits": "numbers"} if self.limits else {})

    def with_meanings(self, meanings: Mapping[str, Any]) -> TextForm:
        """Return the form with the settings that a fitted model stored as ``meanings`` added."""
        na = meanings.get("na")
        missing_codes = () if na is None else (str(na),)
        return replace(
            self, na=(*self.na, *missing_codes), limits=self.limits or "limits" in meanings
        )

    def tidied(self, cells: NDArray[Any], is_label: bool = False) -> NDArray[Any]:
        """Return a column with missing values (NaN or "") for cells that mean one.

        If ``limits`` is set, limits of detection such as <0.5 become numbers. Numbers are changed
        in place. Text becomes numeric if all other cells are numbers, unless ``is_label`` says that
        the cells are labels.
        """
        if cells.dtype != object:
            codes = [value for cell in self.na if (value := _plain_number(cell)) is not None]
            cells[np.isin(cells, codes)] = np.nan
            return cells
        # Each distinct cell is looked at once; ``changed`` has the new texts of some.
        distinct = dict.fromkeys(cells.tolist())
        changed = {cell: "" for cell in distinct if cell and self.is_missing(cell)}
        if self.limits and not is_label:
            plain = {cell: without_limits(cell) for cell in distinct if cell not in changed}
            # If all cells are limits, such as <5 and >=5, they are labels of classes.
            has_numbers = any(cell == bare for cell, bare in plain.items() if cell)
            if has_numbers and is_numeric(plain.values()):
                changed |= plain
        if not changed:
            return cells
        tidy = np.array([changed.get(cell, cell) for cell in cells.tolist()], dtype=object)
        return tidy if is_label else as_numbers(tidy)

    def number(self, cell: str) -> float | None:
        """Return a cell as a number: NaN if it is missing, None if it is text.

        A comma is the decimal mark unless it is the delimiter; then it separates thousands.
        """
        # Python reads 1_000 as a number; in a data file it is a name.
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
            match = _DECIMAL_COMMA.fullmatch(plain)
            plain = plain.replace(".", "").replace(",", ".")
        else:
            match = _THOUSANDS.fullmatch(plain)
            plain = plain.replace(",", "")
        return None if match is None else float(plain)


def _plain_number(cell: str) -> float | None:
    """Return the text of a cell as a float, or None if it is no number."""
    try:
        return float(cell)
    except ValueError:
        return None


def as_numbers(cells: NDArray[Any]) -> NDArray[Any]:
    """Return cells of text as floats ("" becomes NaN); unchanged if any cell is not a number."""
    # Python reads 1_000 as a number; in a data file it is a name.
    if any("_" in cell for cell in cells.tolist()):
        return cells
    try:
        return np.where(cells == "", "nan", cells).astype(np.float64)
    except ValueError:
        return cells


def is_numeric(cells: Iterable[str]) -> bool:
    """Return whether all cells are numbers, as they are or as ``numbers_written`` reads them."""
    filled = [cell for cell in cells if cell]
    if as_numbers(np.array(filled, dtype=object)).dtype != object:
        return True
    written = numbers_written(filled)
    return written is not None and not written.strays


def polars() -> Any:
    """Return polars; None if it is not installed or cannot be used in this process.

    The threads of polars do not survive a fork. In a child process whose parent had loaded it, the
    next call would hang, so a child process does not use it.
    """
    is_child = os.getpid() != _PROCESS and "polars" in sys.modules
    if is_child or importlib.util.find_spec("polars") is None:
        return None
    return importlib.import_module("polars")


def records(path: Path, content: str, form: TextForm) -> Iterator[tuple[int, list[str]]]:
    """Yield each record (row) that is not blank, as the number of its last line and its cells.

    ``content`` is the text, ``form`` says its delimiter, and ``path`` is the file, for messages.
    """
    # A StringIO would take four bytes for each character.
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
    """Return the columns of delimited text, parsed with the standard library.

    A line with another number of cells than ``width`` is refused.

    Parameters
    ----------
    path : Path
        The file, for messages.
    content : str
        The text: whole lines.
    form : TextForm
        How the text is written.
    width : int
        Number of cells of a line.
    text : set of int
        Columns to keep as text.
    lines_before : int
        Number of lines of the file before the content, for messages.
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
    return [column_of(column, form, index in text) for index, column in enumerate(cells)]


def column_of(cells: Sequence[str], form: TextForm, is_text: bool = False) -> NDArray[Any]:
    """Return cells as numbers if all of them are numbers or missing, else as text.

    ``form`` says how numbers and missing values are written; ``is_text`` keeps all cells as text.
    """
    values = None if is_text else _numbers(cells, form)
    if values is not None:
        return np.array(values, dtype=np.float64)
    # Equal cells share one object, so that categories take little memory.
    plain = {cell: "" if form.is_missing(cell) else cell.strip() for cell in set(cells)}
    return np.array([plain[cell] for cell in cells], dtype=object)


def _numbers(cells: Sequence[str], form: TextForm) -> list[float] | None:
    """Return cells as numbers, NaN if missing; None if a cell is text.

    ``form`` says how numbers and missing values are written.
    """
    # Plain numbers are read fast; others are looked at one by one.
    with contextlib.suppress(ValueError):
        if "_" not in "".join(cells):
            return list(map(float, cells))
    numbers = list[float]()
    for cell in cells:
        value = form.number(cell)
        if value is None:
            return None
        numbers.append(value)
    return numbers


def by_polars(content: str, form: TextForm, width: int, text: set[int]) -> Columns | None:
    """Return the columns of delimited text, parsed with polars, or None.

    The result is None if polars fails, or might parse the text differently than ``in_rows``.

    ``content`` is the text (whole lines), ``form`` says how it is written, ``width`` is the number
    of cells of a line, and ``text`` has the numbers of the columns to keep as text. Polars is
    faster than the standard library.
    """
    # In a file of one column, polars takes a blank line for a missing value.
    pl = None if width == 1 or form.delimiter == " " else polars()
    if pl is None:
        return None
    words = sorted(MISSING.union(form.na))
    nulls = ["", "NaN", *words, *map(str.upper, words)]
    names = list(map(str, range(width)))
    quoted = '"' in content
    raw = content.encode()
    # Columns whose first cell is no number are most likely words, which ``column_of`` looks at.
    try:
        _, first = next(records(Path(), content, form))
    except (ValueError, StopIteration):
        return None
    text_columns = text.union(j for j, cell in enumerate(first) if form.number(cell) is None)
    try:
        frame = pl.read_csv(
            raw,
            has_header=False,
            separator=form.delimiter,
            schema={name: pl.String if int(name) in text_columns else pl.Float64 for name in names},
            null_values=nulls,
            quote_char='"' if quoted else None,
        )
    except pl.exceptions.PolarsError:
        return None  # The column has text, or numbers that only our parser recognizes.
    # Polars fills blank and short lines with nulls. Nulls in the last column are missing values
    # only if the number of delimiters shows that all lines are complete.
    series = frame.get_columns()
    if series[-1].null_count() and not (
        not quoted and content.count(form.delimiter) == frame.height * (width - 1)
    ):
        return None
    return [
        column_of(cells.fill_null("").to_list(), form, index in text)
        if index in text_columns
        else np.asarray(cells.to_numpy(), dtype=np.float64)
        for index, cells in enumerate(series)
    ]
