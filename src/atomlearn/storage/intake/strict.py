"""read_as_table: a frame as ``read_table`` gives it, numbers and categories, nothing left out."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path

from atomlearn.storage.formats.categories import RawTable, encode, encode_like
from atomlearn.storage.formats.table import DataTable, Request
from atomlearn.storage.intake.frame import Frame


def read_as_table(read: Callable[[Path], Frame], path: Path, request: Request) -> DataTable:
    """Return the table of a file that a frame is read of; missing values are refused."""
    frame = read(path)
    texts = {name: [str(cell) for cell in cells] for name, cells in frame.texts.items()}
    lines = array("q", range(2, frame.n_rows + 2))
    raw = RawTable(path, frame.header, frame.slots, frame.numbers, texts, lines)
    for name in request.exclude:
        raw.require(name)
    target, schema = request.target, request.schema
    y = None if target is None else raw.target(target)
    if schema is not None:
        return DataTable(encode_like(raw, schema), y, schema, target, str(path))
    left_out = {target, *request.exclude}
    X, schema = encode(raw, [name for name in raw.header if name not in left_out])
    return DataTable(X, y, schema, target, str(path))
