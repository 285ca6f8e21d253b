"""Frame: the cells of a table, as columns of numbers or of text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array
from atomlearn.storage.formats.held import is_large, room
from atomlearn.storage.formats.messages import listing, near_names
from atomlearn.storage.intake.cells import Columns, TextForm, as_numbers


class TableFile(ABC):
    """A file that contains a table.

    Parameters
    ----------
    path : Path
        The file.
    form : TextForm
        How the text is written.
    sheet : str, optional
        Sheet of a workbook.

    Attributes
    ----------
    header : list of str
        Names of the columns.
    notes : list of str
        Remarks for the user.
    text : set of int
        Columns known to contain text.
    dtypes : dict
        Types of the columns of numbers, if the file declares them.
    transposes : bool
        Whether ``--transpose`` exchanges rows and columns; False for formats in which every row is
        a sample.
    """

    transposes = True

    def __init__(self, path: Path, form: TextForm, sheet: str | None = None) -> None:
        """Store the file, how its text is written (``form``), and the sheet of a workbook.

        Subclasses open the file and set ``header``.
        """
        self.path = path
        self.form = form
        self.sheet = sheet
        self.header, self.notes, self.text = list[str](), list[str](), set[int]()
        self.dtypes: dict[str, np.dtype[Any]] = {}

    @abstractmethod
    def pieces(self) -> Iterator[Columns]:
        """Yield the columns of consecutive groups of rows."""

    def line(self, row: int) -> str:
        """Return the place of a row (counted from 0) in the file, for messages."""
        return f"row {row + 1}"

    def learned(self, columns: Columns) -> bool:
        """Record in ``text`` which columns of a piece have text; return whether any is new there.

        ``columns`` are the columns of the piece, in the order of the header.
        """
        new = {index for index, cells in enumerate(columns) if cells.dtype == object} - self.text
        self.text |= new
        return bool(new)

    def frame(self) -> Frame:
        """Return all rows; the file is read again if a later piece shows that a column is text.

        Large files are collected in temporary files in place of memory.
        """
        # A piece with text in a column that held numbers before makes the pieces so far useless.
        # Then the rest of the file is only searched for more such columns.
        must_read = True
        pieces = list[Columns]()
        while must_read:
            must_read = False
            pieces = []
            n_bytes = 0
            for columns in self.pieces():
                must_read = self.learned(columns) or must_read
                if not must_read:
                    n_bytes += sum(column.nbytes for column in columns)
                    # The parts are kept until all of them are copied into one array.
                    pieces.append(wait_in_file(columns) if is_large(n_bytes) else columns)
        n_rows = sum(piece[0].size for piece in pieces)
        if n_rows == 0:
            raise ValueError(f"{self.path} has a header but no data; expected one line a sample")
        # All numeric columns are in one block; text columns are separate arrays.
        block = room((n_rows, len(self.header)))
        values = dict[str, NDArray[Any]]()
        for index, name in enumerate(self.header):
            numbers = None if index in self.text else block[:, index]
            cells = np.concatenate([piece[index] for piece in pieces], out=numbers)
            values[name] = self.form.tidied(cells, name in self.form.labels)
            for piece in pieces:
                piece[index] = cells[:0]  # releases the memory of the part
        return Frame(self.path, values, n_rows, list(self.notes), self.line)


@dataclass(slots=True, eq=False)
class Frame:
    """A data frame: columns of floats (NaN if missing) or of strings ("" if missing).

    Attributes
    ----------
    path : Path
        The file.
    columns : dict of arrays
        Cells by name, in the order of the file: floats, or objects if they are text.
    n_rows : int
        Number of rows.
    notes : list of str
        Remarks for the user.
    line : callable
        Returns the place of a row in the file, for messages.
    """

    path: Path
    columns: dict[str, NDArray[Any]]
    n_rows: int
    notes: list[str] = field(default_factory=list)
    line: Callable[[int], str] = field(default=lambda row: f"row {row + 1}")

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    def require(self, names: Sequence[str]) -> None:
        """Raise ValueError with similar names if any of the columns ``names`` is absent."""
        for name in names:
            if name not in self.columns:
                # Notes on these options may explain why the column is absent.
                options = ("--sheet", "--header-row")
                hints = [
                    f"; {note}" for note in self.notes if any(option in note for option in options)
                ]
                raise ValueError(
                    f"{self.path} has no column {name!r}{near_names(name, self.header)}"
                    f"{''.join(hints)}"
                )

    def is_text(self, name: str) -> bool:
        """Return whether the column ``name`` contains text."""
        return self.columns[name].dtype == object

    def cells(self, name: str) -> NDArray[Any]:
        """Return the column ``name`` as text: "" if missing, whole numbers without a point."""
        if self.is_text(name):
            return self.columns[name]
        return np.array([_shown(value) for value in self.columns[name].tolist()], dtype=object)

    def missing(self, name: str) -> NDArray[np.bool_]:
        """Return a mask of the cells of the column ``name`` that are empty or not finite."""
        cells = self.columns[name]
        return np.asarray(cells == "") if self.is_text(name) else ~np.isfinite(cells)

    def tidied(self, form: TextForm) -> Frame:
        """Return the frame with missing values for the cells that mean one in ``form``."""
        columns = {
            name: form.tidied(cells, name in form.labels) for name, cells in self.columns.items()
        }
        return replace(self, columns=columns)

    def rows(self, kept: NDArray[np.int64]) -> Frame:
        """Return the frame of the rows numbered ``kept``, in this order."""
        if kept.size == self.n_rows and (kept == np.arange(self.n_rows)).all():
            return self
        # Numeric columns are in one block, which is in a temporary file if it is large.
        block = room((kept.size, len(self.columns)))
        columns = dict[str, NDArray[Any]]()
        for index, (name, cells) in enumerate(self.columns.items()):
            columns[name] = cells[kept] if self.is_text(name) else block[:, index]
            if not self.is_text(name):
                columns[name][:] = cells[kept]
        # Messages give the place of a row in the file.
        line = self.line
        return Frame(
            self.path, columns, int(kept.size), self.notes, lambda row: line(int(kept[row]))
        )


def _shown(value: float) -> str:
    """Return a number as text: "" for NaN, and whole numbers without a decimal point."""
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def wait_in_file(columns: Columns) -> Columns:
    """Move numeric columns to a memory-mapped temporary file, and return the list of columns.

    The list is changed in place, so that the memory of its arrays is released.
    """
    block = room((columns[0].size, len(columns)), in_file=True)
    for index, cells in enumerate(columns):
        if cells.dtype != object:
            block[:, index] = cells
            columns[index] = block[:, index]
    return columns


def distinct_names(raw_names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return distinct names in place of ``raw_names``, and notes about names that were changed.

    A repeated name gets the number of its occurrence: a, a_2, a_3. A blank one becomes column_j.
    There is at most one note.
    """
    counts: dict[str, int] = {}
    names = []
    renamed = []
    # A new name must be none of the other names.
    used_names = {name.strip() for name in raw_names}
    for index, raw in enumerate(raw_names):
        # R writes an empty name above its row names.
        name = raw.strip() or f"column_{index}"
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            number = counts[name]
            while f"{name}_{number}" in used_names:
                number += 1
            renamed.append(f"{name}_{number}")
            used_names.add(renamed[-1])
            name = renamed[-1]
        names.append(name)
    if not renamed:
        return names, []
    text = f"column names came twice; the later ones are {listing(renamed)} here"
    return names, [f"{len(renamed)} {text}"]


def names_of_lines(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of columns in several lines; a cell of an upper line spans blank ones.

    Examples
    --------
    >>> from atomlearn.storage.intake.frame import names_of_lines
    >>> names_of_lines([["", "CRP", "", "Na"], ["id", "day 1", "day 2", ""]])
    ['id', 'CRP day 1', 'CRP day 2', 'Na']
    """
    width = max(map(len, lines))
    names = [""] * width
    for number, line in enumerate(lines):
        text = ""
        for index, cell in enumerate([*line, *[""] * (width - len(line))]):
            # A blank cell repeats the cell before it, except in the last line.
            text = cell.strip() or (text if number < len(lines) - 1 else "")
            names[index] = f"{names[index]} {text}".strip()
    return names


#: Columns that describe the features of a table whose other columns are samples: of featureCounts,
#: of files with normalized lengths, and of clusterings (.pcl, .cdt).
BESIDE_SAMPLES = (
    *("chr", "chrom", "chromosome", "start", "end", "strand"),
    *("length", "gene_length", "effectivelength", "effective_length"),
    *("gweight", "gorder", "description"),
)
#: The row of .pcl and .cdt files that describes the samples.
BESIDE_FEATURES = ("EWEIGHT",)


def transposed(frame: Frame) -> tuple[Frame, list[str]]:
    """Return the transposed table of ``frame``, and the names of its rows (the file's header).

    The first column has the names of the new columns if it is text, has no name, or has a distinct
    whole number in each row (such as gene numbers). Other columns that contain only text describe
    the features, which are the rows of the file, and are left out.
    """
    first = frame.header[0]
    # Whether each column has distinct whole numbers; if all have, the first one is data, too.
    are_numbers = [
        not frame.is_text(name) and _is_numbering(frame.columns[name]) for name in frame.header
    ]
    has_names = frame.is_text(first) or first.startswith("column_0")
    has_names = has_names or (are_numbers[0] and not all(are_numbers))
    samples = frame.header[1:] if has_names else frame.header
    words = [name for name in samples if frame.is_text(name) and _is_words(frame.columns[name])]
    # Columns that describe the features, unless all columns would be such.
    unused = [name for name in samples if name in words or name.casefold() in BESIDE_SAMPLES]
    notes = list(frame.notes)
    if 0 < len(unused) < len(samples):
        samples = [name for name in samples if name not in unused]
        notes.append(f"columns beside the samples left out: {listing(unused)}")
    # Names of the new columns.
    labels = [str(cell) for cell in frame.cells(first)] if has_names else None
    if labels and labels[0] in BESIDE_FEATURES:
        notes.append(f"row {labels[0]!r} left out: it holds weights of the samples")
        frame = frame.rows(np.arange(1, frame.n_rows))
        labels = labels[1:]
    names, renamed = distinct_names(labels or [f"x{row}" for row in range(frame.n_rows)])
    if not any(map(frame.is_text, samples)):
        block = np.stack([frame.columns[name] for name in samples])
        columns = dict(zip(names, block.T, strict=True))
    else:
        # Some rows contain text, such as labels of the samples.
        cells = np.array([frame.cells(name) for name in samples], dtype=object)
        columns = {name: as_numbers(cells[:, index]) for index, name in enumerate(names)}
    return Frame(frame.path, columns, len(samples), notes + renamed), samples


def _is_numbering(values: Array) -> bool:
    """Return whether all values are whole and distinct."""
    return bool((values == np.rint(values)).all()) and np.unique(values).size == values.size


def _is_words(cells: NDArray[Any]) -> bool:
    """Return whether no cell of ``cells``, a column of text, is a number."""
    return all(as_numbers(cells[row : row + 1]).dtype == object for row in np.flatnonzero(cells))
