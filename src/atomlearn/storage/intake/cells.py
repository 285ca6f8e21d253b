"""From a block of delimited text to columns: numbers with NaN where missing, or text with "".

Blocks go through polars where it is installed and they are plain; what it does not take, or takes
without a word (lines that are short), goes through the standard library, which says what is wrong
and where. Both give the same cells.
"""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.fast_text import polars
from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.intake.limits import INTAKE

#: What stands for a value that is not known, beside "", in any case.
MISSING = frozenset({"na", "n/a", "#n/a", "nan", "null", "?", "<na>", "."})
_CASES = (str.lower, str.upper, str.capitalize, lambda text: "NaN" if text == "nan" else text)
Columns = list[NDArray[Any]]


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a text file is written; None and "" where it is to be found out.

    delimiter : one character; decimal : "." or ","; encoding : as Python names it; header :
    whether the first line has names; missing : further cells that stand for no value; labels :
    columns of names, which stay as they are written (0007 is not 7).
    """

    delimiter: str = ""
    decimal: str = ""
    encoding: str = ""
    header: bool = True
    missing: frozenset[str] = field(default_factory=frozenset)
    labels: frozenset[str] = field(default_factory=frozenset)

    def is_missing(self, cell: str) -> bool:
        """Whether a cell stands for a value that is not known."""
        folded = cell.strip().casefold()
        return not folded or folded in MISSING or folded in self.missing


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file in UTF-8; before : the number of lines before them, for messages."""

    path: Path
    content: bytes
    before: Callable[[], int]


def records(path: Path, lines: Iterable[str], form: TextForm) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which a record ends, and its cells; blank lines left out."""
    csv.field_size_limit(LIMITS.longest_cell)
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


def parsed(block: Block, form: TextForm, width: int, text: set[int]) -> Columns:
    """Return the columns of a block, those of ``text`` and those with text in it as objects."""
    large = len(block.content) >= INTAKE.fast_bytes or "polars" in sys.modules
    if form.delimiter != " " and large:
        found = _quickly(block, form, width, text)
        if found is not None:
            return found
    return _carefully(block, form, width, text)


def _carefully(block: Block, form: TextForm, width: int, text: set[int]) -> Columns:
    """Return the columns, read with the standard library; raise where a line is no row."""
    lines = io.StringIO(block.content.decode("utf-8"), newline="")
    rows = []
    for line, row in records(block.path, lines, form):
        if len(row) != width:
            raise ValueError(
                f"line {block.before() + line} of {block.path} has {len(row)} cells, and the "
                f"others have {width}; repair that line, or give --delimiter"
            )
        rows.append(row)
    cells = zip(*rows, strict=True) if rows else [()] * width
    return [_column(column, form, place in text) for place, column in enumerate(cells)]


def _column(cells: Sequence[str], form: TextForm, is_text: bool) -> NDArray[Any]:
    """Return cells as numbers, where all of them are or are missing, else as text."""
    if not is_text:
        try:
            # Python reads 1_000 as a number; a data file that has it means a name.
            if "_" not in "".join(cells):
                return np.array(list(map(float, cells)), dtype=np.float64)
        except ValueError:
            pass
        values = [number_of(cell, form) for cell in cells]
        if None not in values:
            return np.array(values, dtype=np.float64)
    plain = [cell.strip() for cell in cells]
    return _shared("" if form.is_missing(cell) else cell for cell in plain)


def number_of(cell: str, form: TextForm) -> float | None:
    """Return a cell as a number; NaN where it is missing, None where it is text."""
    try:
        return float(cell) if "_" not in cell else None
    except ValueError:
        return float("nan") if form.is_missing(cell) else None


def _shared(cells: Iterable[str]) -> NDArray[Any]:
    """Return text as objects, equal cells as one object: categories take little memory."""
    held: dict[str, str] = {}
    return np.array([held.setdefault(cell, cell) for cell in cells], dtype=object)


def _quickly(block: Block, form: TextForm, width: int, text: set[int]) -> Columns | None:
    """Return the columns as polars reads them; None where it cannot, or may read them wrongly."""
    pl = None if width == 1 else polars()  # of one column, a blank line is a missing value to it
    if pl is None:
        return None
    content, quoted = block.content, b'"' in block.content
    tokens = list(missing_words(form))
    names = [str(place) for place in range(width)]
    kinds = {name: pl.String if int(name) in text else pl.Float64 for name in names}
    given: dict[str, Any] = {"has_header": False, "separator": form.delimiter}
    # Numbers alone, sooner than with marks of missing ones; then with text among them.
    for schema, nulls in ((kinds, None), (kinds, tokens), (dict.fromkeys(names, pl.String), None)):
        with contextlib.suppress(pl.exceptions.PolarsError):
            frame = pl.read_csv(
                content,
                schema=schema,
                null_values=nulls,
                quote_char='"' if quoted else None,
                **given,
            )
            break
    else:
        return None
    if frame[:, -1].null_count() and not (
        # Missing values, or lines that are blank or short, which polars fills up?
        not quoted and content.count(form.delimiter.encode()) == frame.height * (width - 1)
    ):
        return None
    return [of_series(pl, frame[name], form, int(name) in text) for name in names]


def missing_words(form: TextForm) -> tuple[str, ...]:
    """Return what stands for no value, in the cases in which people write it."""
    return tuple(sorted({case(t) for t in MISSING | form.missing for case in _CASES} | {""}))


def of_series(pl: Any, series: Any, form: TextForm, is_text: bool) -> NDArray[Any]:
    """Return a column of polars as numbers, where all of it is, else as text."""
    if series.dtype == pl.String:
        series = series.str.strip_chars()
        folded, tokens = series.str.to_lowercase(), sorted(MISSING | form.missing | {""})
        series = series.set(folded.is_in(tokens).fill_null(value=False), None)
        numbers = None if is_text else series.cast(pl.Float64, strict=False)
        if numbers is None or numbers.null_count() > series.null_count():
            return _shared(cell or "" for cell in series)
        series = numbers
    return np.asarray(series.to_numpy(), dtype=np.float64)
