"""TableFile: the rows of a table, a piece at a time, whatever kind of file holds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn.storage.formats.compressed import unpacked_size
from atomlearn.storage.formats.held import fits
from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.intake.cells import Columns, TextForm
from atomlearn.storage.intake.frame import Frame


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
