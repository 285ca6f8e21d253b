"""Frame: the cells of a table in memory, numbers and text apart, as they were read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array
from atomlearn.storage.formats.compressed import unpacked_size
from atomlearn.storage.formats.held import LIMITS, fits
from atomlearn.storage.formats.messages import listing, near_names
from atomlearn.storage.intake.cells import Columns, TextForm


class TableFile(ABC):
    """A file of a table.

    form : how it is written; sheet : of a workbook; header : names of the columns; notes : what
    was done to them; text : the columns that hold text, as far as was seen; n_bytes : what its
    numbers take in memory; dtypes : of columns of numbers, where the file says.
    """

    def __init__(self, path: Path, form: TextForm, sheet: str | None = None) -> None:
        self.path, self.form, self.sheet = path, form, sheet
        self.header, self.notes, self.text = list[str](), list[str](), set[int]()
        self.n_bytes = unpacked_size(path)
        self.dtypes: dict[str, np.dtype[Any]] = {}

    @abstractmethod
    def pieces(self, position: int, n_bytes: int) -> Iterator[tuple[Columns, int]]:
        """Yield columns of some rows, and the position after them, from a position on."""

    def line(self, row: int) -> str:
        """Return where a row stands, for messages."""
        return f"row {row + 1}"

    def learned(self, columns: Columns) -> bool:
        """Take note of columns that turn out to be text; whether there were any."""
        new = {place for place, cells in enumerate(columns) if cells.dtype == object} - self.text
        self.text |= new
        return bool(new)

    def frame(self) -> Frame:
        """Return all rows; columns that turn out to be text late are read once more."""
        fits(self.path, "its table", self.n_bytes)
        again, parts = True, list[Columns]()
        while again:
            again, parts, held = False, [], 0
            for columns, _ in self.pieces(0, LIMITS.piece_bytes):
                again = self.learned(columns) or again
                if not again:
                    parts.append(columns)
                    # They are copied into one array in the end.
                    held += sum(column.nbytes for column in columns)
                    fits(self.path, "its table", held)
        frame = self.frame_of(parts)
        if frame.n_rows == 0:
            raise ValueError(f"{self.path} has a header but no data; expected one line a sample")
        return frame

    def frame_of(self, parts: list[Columns]) -> Frame:
        """Return the frame of pieces, which are given up as they are copied."""
        n_rows = sum(part[0].size for part in parts)
        numeric = [place for place in range(len(self.header)) if place not in self.text]
        numbers = np.empty((n_rows, len(numeric)), order="F")
        texts: dict[int, list[Any]] = {place: [[]] for place in sorted(self.text)}
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
        return Frame(
            self.path,
            self.header,
            {self.header[place]: slot for slot, place in enumerate(numeric)},
            numbers,
            {self.header[place]: np.concatenate(cells) for place, cells in texts.items()},
            n_rows,
            list(self.notes),
            self.line,
        )


@dataclass(slots=True, eq=False)
class Frame:
    """The columns of a file: numbers with NaN where they are missing, or text with "".

    header : names in the order of the file; slots : the place of each column of numbers in
    ``numbers`` (n_rows, n_numbers); texts : the cells of each column of text, object arrays;
    notes : what was done on reading that its owner should know; line : row -> where it stands.
    """

    path: Path
    header: list[str]
    slots: dict[str, int]
    numbers: Array
    texts: dict[str, NDArray[Any]]
    n_rows: int
    notes: list[str] = field(default_factory=list)
    line: Callable[[int], str] = field(default=lambda row: f"row {row + 1}")

    def require(self, names: Sequence[str]) -> None:
        """Raise ValueError with near matches where there is no such column."""
        known = set(self.header)
        for name in names:
            if name not in known:
                sheets = [f"; {note}" for note in self.notes if "--sheet" in note]
                raise ValueError(
                    f"{self.path} has no column {name!r}{near_names(name, self.header)}"
                    f"{''.join(sheets)}"
                )

    def is_text(self, name: str) -> bool:
        """Whether a column holds text."""
        return name in self.texts

    def held(self, name: str) -> NDArray[Any]:
        """Return a column as it is held: as text, or as numbers."""
        return self.texts[name] if name in self.texts else self.values(name)

    def values(self, name: str) -> Array:
        """Return a column of numbers, NaN where missing."""
        values: Array = self.numbers[:, self.slots[name]]
        return values

    def cells(self, name: str) -> NDArray[Any]:
        """Return a column as text, "" where missing; whole numbers without a point."""
        if name in self.texts:
            return self.texts[name]
        return np.array([_shown(value) for value in self.values(name).tolist()], dtype=object)

    def missing(self, name: str) -> NDArray[np.bool_]:
        """Return where a column has no value, or none that is finite."""
        if name in self.texts:
            return np.asarray(self.texts[name] == "")
        return ~np.isfinite(self.values(name))

    def lacks(self, name: str) -> bool:
        """Whether a column has a missing value: numbers are told by their sum, without a copy."""
        if name in self.texts:
            return bool(self.missing(name).any())
        with np.errstate(over="ignore", invalid="ignore"):
            return not np.isfinite(self.values(name).sum()) and bool(self.missing(name).any())

    def with_columns(self, other: Frame, names: Sequence[str]) -> Frame:
        """Return the frame with columns of another one, which has the same rows."""
        columns = {name: self.held(name) for name in self.header}
        columns |= {name: other.held(name) for name in names}
        return replace(frame_of_columns(self.path, columns, self.notes), line=self.line)

    def rows(self, kept: NDArray[np.int64]) -> Frame:
        """Return the frame of these rows, in the order given."""
        if kept.size == self.n_rows and (kept == np.arange(self.n_rows)).all():
            return self
        texts = {name: cells[kept] for name, cells in self.texts.items()}
        line, places = self.line, kept
        return replace(
            self,
            numbers=self.numbers[kept],
            texts=texts,
            n_rows=int(kept.size),
            line=lambda row: line(int(places[row])),
        )


def _shown(value: float) -> str:
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def frame_of_columns(
    path: Path, columns: dict[str, NDArray[Any]], notes: Sequence[str] = ()
) -> Frame:
    """Return the frame of columns that are arrays: numbers, or objects with "" where missing."""
    header = list(columns)
    numeric = [name for name in header if columns[name].dtype.kind != "O"]
    n_rows = len(next(iter(columns.values()))) if columns else 0
    numbers = np.empty((n_rows, len(numeric)), order="F")
    for place, name in enumerate(numeric):
        numbers[:, place] = columns[name]
    texts = {name: columns[name] for name in header if columns[name].dtype.kind == "O"}
    slots = {name: place for place, name in enumerate(numeric)}
    return Frame(path, header, slots, numbers, texts, n_rows, list(notes))


def distinct_names(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names without blanks and repetitions, and a note about what was renamed."""
    found: dict[str, int] = {}
    names, renamed = [], []
    taken = {name.strip() for name in given}
    for place, raw in enumerate(given):
        # R writes an empty name above its row names.
        name = raw.strip() or f"column_{place}"
        found[name] = found.get(name, 0) + 1
        if found[name] > 1:
            number = found[name]
            while f"{name}_{number}" in taken:
                number += 1
            renamed.append(f"{name}_{number}")
            taken.add(renamed[-1])
            name = renamed[-1]
        names.append(name)
    if not renamed:
        return names, []
    told = f"column names came twice; the later ones are {listing(renamed)} here"
    return names, [f"{len(renamed)} {told}"]


def transposed(frame: Frame) -> tuple[Frame, list[str]]:
    """Return the table turned around, and the names of its rows: the header of the file.

    The first column holds the names of the new columns, where it is text, has no name, or another
    whole number in each row (as gene numbers are). Others of text alone describe the rows.
    """
    first = frame.header[0]
    numbers = [not frame.is_text(n) and _is_numbering(frame.values(n)) for n in frame.header]
    named = frame.is_text(first) or first.startswith("column_0")
    named = named or (numbers[0] and not all(numbers))
    samples = frame.header[1:] if named else frame.header
    apart = [name for name in samples if frame.is_text(name) and _is_words(frame.texts[name])]
    notes = list(frame.notes)
    if 0 < len(apart) < len(samples):
        samples = [name for name in samples if name not in apart]
        notes.append(f"columns of text beside the samples left out: {listing(apart)}")
    labels = [str(cell) for cell in frame.cells(first)] if named else None
    names, told = distinct_names(labels or [f"x{row}" for row in range(frame.n_rows)])
    if not any(map(frame.is_text, samples)):
        held = frame.numbers[:, [frame.slots[name] for name in samples]]
        slots = {name: place for place, name in enumerate(names)}
        return Frame(frame.path, names, slots, held.T, {}, len(samples), notes + told), samples
    # Rows of text among those of numbers, such as labels of the samples.
    cells = np.array([frame.cells(name) for name in samples], dtype=object)
    columns = {name: as_numbers(cells[:, place]) for place, name in enumerate(names)}
    return frame_of_columns(frame.path, columns, notes + told), samples


def _is_numbering(values: Array) -> bool:
    """Return whether all values are whole and no two are the same."""
    return bool((values == np.rint(values)).all()) and np.unique(values).size == values.size


def _is_words(cells: NDArray[Any]) -> bool:
    """Return whether no cell of a column of text is a number."""
    return all(as_numbers(cells[row : row + 1]).dtype == object for row in np.flatnonzero(cells))


def as_numbers(cells: NDArray[Any]) -> NDArray[Any]:
    """Return cells of text as numbers where all that are not "" are numbers."""
    try:
        return np.where(cells == "", "nan", cells).astype(np.float64)
    except ValueError:
        return cells
