"""TypedFile: rows of a Parquet or Arrow file a piece at a time, as TextFile gives those of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.understood import understood
from atomlearn.storage.intake.cells import Columns, TextForm
from atomlearn.storage.intake.frame import distinct_names
from atomlearn.storage.intake.tables import arrow_column, plain_names
from atomlearn.storage.intake.text import TextFile

#: batches(path, rows) -> record batches of about so many rows at most.
Batches = Callable[[Path, int], Iterator[Any]]


class TypedFile(TextFile):
    """A file of columns with types; positions are rows.

    header, notes, text : as of ``TextFile``; words that are numbers are numbers, unless a later
    piece holds others.
    """

    def __init__(self, path: Path, form: TextForm, names: list[str], batches: Batches) -> None:
        # Words with a decimal comma stay words here, as where the file is read whole.
        self.path, self.form, self.text = path, replace(form, decimal="."), set()
        self.header, notes = distinct_names(plain_names(names))
        self.notes, self._batches = list(notes), batches

    def pieces(self, position: int, n_bytes: int) -> Iterator[tuple[Columns, int]]:
        """Yield columns of some rows, and the row after them, from a row on."""
        pa = imported("pyarrow", "pyarrow", self.path)
        rows, at = max(n_bytes // (8 * len(self.header)), 1), 0
        for batch in self._batches(self.path, rows):
            start, at = at, at + batch.num_rows
            if at <= position:
                continue
            table = pa.Table.from_batches([batch.slice(max(position - start, 0))])
            labels = self.form.labels | {self.header[place] for place in self.text}
            yield (
                [
                    arrow_column(table.column(place), self.path, name, labels)
                    for place, name in enumerate(self.header)
                ],
                at,
            )

    def line(self, row: int) -> str:
        """Return where a row stands, for messages."""
        return f"row {row + 1}"


def _one_by_one(path: Path, kind: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches, each read by itself: what is done with it is none of the parser's."""
    left = iter(batches)
    while True:
        with understood(path, kind):
            batch = next(left, None)
        if batch is None:
            return
        yield batch


def parquet_file(path: Path, form: TextForm) -> TypedFile:
    """Return the rows of a Parquet file."""
    pq = imported("pyarrow.parquet", "pyarrow", path)

    def batches(path: Path, rows: int) -> Iterator[Any]:
        with understood(path, "Parquet file"):
            file = pq.ParquetFile(path)
        yield from _one_by_one(path, "Parquet file", file.iter_batches(batch_size=rows))

    with understood(path, "Parquet file"):
        names = list(pq.ParquetFile(path).schema_arrow.names)
    return TypedFile(path, form, names, batches)


def arrow_file(path: Path, form: TextForm) -> TypedFile:
    """Return the rows of an Arrow or Feather file (IPC, as a file or as a stream)."""
    ipc = imported("pyarrow.ipc", "pyarrow", path)
    pa = imported("pyarrow", "pyarrow", path)

    def opened(path: Path) -> Any:
        held = pa.memory_map(str(path))
        try:
            return ipc.open_file(held)
        except pa.ArrowInvalid:
            return ipc.open_stream(held)

    def batches(path: Path, rows: int) -> Iterator[Any]:
        with understood(path, "Arrow file"):
            source = opened(path)
            count = getattr(source, "num_record_batches", None)
            whole = source if count is None else map(source.get_batch, range(count))
        for batch in _one_by_one(path, "Arrow file", whole):
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    with understood(path, "Arrow file"):
        names = list(opened(path).schema.names)
    return TypedFile(path, form, names, batches)
