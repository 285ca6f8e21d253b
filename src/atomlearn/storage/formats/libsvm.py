"""libsvm (svmlight) files, plain or compressed, through polars or scikit-learn's parser."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import open_bytes, rest_of_line
from atomlearn.storage.formats.fast_text import polars
from atomlearn.storage.formats.held import fits
from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.formats.sources import About, RowPiece, RowSource
from atomlearn.storage.formats.table import (
    DataTable,
    Request,
    Schema,
    sparse_size,
    tidy_target,
)
from atomlearn.storage.formats.understood import understood


def looks_like_libsvm(line: str) -> bool:
    """Tell whether a line is ``label index:value index:value ...``."""
    return bool(re.match(r"[^\s,;:]+(\s+qid:\d+)?(\s+\d+:\S+)+\s*(#.*)?$", line.strip()))


def read_libsvm(path: Path, request: Request) -> DataTable:
    """Return the table of a libsvm file; its labels are the target.

    A file whose indices start at 1, as they should, has its feature 1 in column 0 of X, called
    ``x1``. A file with an index 0 counts from 0. With a ``schema``, the counting and the number of
    columns are those of the file it came from.
    """
    _check_target(path, request.target)
    schema = request.schema
    if schema is not None and schema.names is not None:
        raise ValueError(
            f"{path} has columns without names, but the model was fitted to named columns; give "
            "it data in the format it was fitted to"
        )
    # Parsed by the time its shape is known, so that its text has to fit first.
    fits(path, "its text, parsed,", LIMITS.parsed * path.stat().st_size)
    counted_from_zero, labels = _whole(path, request)
    if counted_from_zero.shape[0] == 0 or counted_from_zero.nnz == 0:
        raise ValueError(f"{path} holds no data; expected lines of 'label index:value ...'")
    n_columns = counted_from_zero.shape[1]
    indices = counted_from_zero.indices
    lowest = int(indices.min()) if indices.size else 1
    first = (1 if lowest > 0 else 0) if schema is None else schema.first_index
    n_features = n_columns - first if schema is None else schema.n_features
    if lowest < first or n_columns > n_features + first:
        raise ValueError(
            f"{path} has feature indices {lowest} to {n_columns - 1}; the model was fitted to "
            f"{first} to {first + n_features - 1}"
        )
    indices -= indices.dtype.type(first)
    X = sp.csr_matrix(
        (counted_from_zero.data, indices, counted_from_zero.indptr),
        shape=(counted_from_zero.shape[0], n_features),
    )
    if not np.isfinite(X.data).all():
        row = int(np.searchsorted(X.indptr, np.argmin(np.isfinite(X.data)), side="right"))
        raise ValueError(f"sample {row} of {path} (counting from 1) has a NaN or infinite value")
    y = tidy_target(labels, f"the target of {path}")
    return DataTable(X, y, schema or Schema(n_features, first_index=first), "y", str(path))


class LibsvmRows(RowSource):
    """``label index:value ...`` lines; positions are bytes of the text."""

    def __init__(self, path: Path, request: Request) -> None:
        _check_target(path, request.target)
        self.path = path
        self._known = 0 if request.schema is None else request.schema.n_features
        self.about = About(None, True, np.dtype(np.float64), drops_first=True)

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        entries = 0
        for text, end in self._whole_lines(position, max(piece_bytes // LIMITS.parsed, 1)):
            where = f" between bytes {end - len(text):,} and {end:,} of its text"
            X, y = _parse(text, self.path, where)
            entries += X.nnz
            if X.shape[1] > self._known + 1:
                sparse_size(self.path, X.shape, entries, X.shape[1])
            if X.shape[0]:
                yield RowPiece(sp.csr_array(X), y, end)

    def _whole_lines(self, position: int, n_bytes: int) -> Iterator[tuple[bytes, int]]:
        """Yield pieces of text that end with a line, and the position after each."""
        with open_bytes(self.path) as stream:
            stream.seek(position)
            while text := stream.read(n_bytes):
                if not text.endswith(b"\n"):
                    text += rest_of_line(stream, self.path, len(text))
                position += len(text)
                yield text, position


def _whole(path: Path, request: Request) -> tuple[sp.csr_matrix, NDArray[np.float64]]:
    """Return all entries, columns counted from zero, and the labels."""
    parts, held = [], 0
    for piece in LibsvmRows(path, request).pieces(0, LIMITS.parsed * LIMITS.parsed_bytes):
        # In 32 bits already here, where they fit: what is read is held twice as it is put together.
        piece.X.indices = piece.X.indices.astype(np.int32 if piece.X.shape[1] < 2**31 else np.int64)
        parts.append(piece)
        held += piece.X.data.nbytes + piece.X.indices.nbytes + 16 * piece.X.shape[0]
        fits(path, "its entries", held)  # which are put together in the end
    if not parts:
        return sp.csr_matrix((0, 0)), np.zeros(0)
    lengths = np.concatenate([np.diff(piece.X.indptr) for piece in parts])
    indices = np.concatenate([piece.X.indices for piece in parts])
    for piece in parts:
        piece.X.indices = indices[:0]
    data = np.concatenate([piece.X.data for piece in parts])
    labels = np.concatenate([piece.y for piece in parts if piece.y is not None])
    shape = lengths.size, max(piece.X.shape[1] for piece in parts)
    pointers = np.append(0, np.cumsum(lengths, dtype=np.int64))
    return sp.csr_matrix((data, indices, pointers), shape=shape), labels


def _check_target(path: Path, target: str | None) -> None:
    if target not in (None, "y"):
        raise ValueError(
            f"{path} is a libsvm file, whose only target is the first number of each line; "
            f"received target {target!r}. Leave the target out"
        )


def _parse(text: bytes, path: Path, where: str) -> tuple[sp.csr_matrix, NDArray[np.float64]]:
    """Return the entries, columns counted from zero, and the labels."""
    plain = _quickly(text) if len(text) >= LIMITS.fast_bytes else None
    if plain is not None:
        return plain
    # Imported here: scikit-learn's datasets take longer to import than most files to read.
    from sklearn.datasets import load_svmlight_file

    remedy = "; expected lines of 'label index:value index:value ...' with ascending indices"
    with understood(path, f"libsvm file{where}", remedy):
        X, y = load_svmlight_file(io.BytesIO(text), zero_based=True)
    return X, y


def _quickly(text: bytes) -> tuple[sp.csr_matrix, NDArray[np.float64]] | None:
    """Return the same by polars, as a table of one ``index,value`` or ``label`` a line.

    None where polars is not installed, or the text is not plain: then scikit-learn says what is
    wrong with it, if anything is.
    """
    pl = None if any(mark in text for mark in b"#,\t\"'") else polars()
    if pl is None:
        return None
    text = text.replace(b"\r\n", b"\n").replace(b" \n", b"\n")
    n_lines = text.count(b"\n") + (not text.endswith(b"\n"))
    # The first line says how many cells a line has at most.
    cells = b"0,0\n" + text.replace(b":", b",").replace(b" ", b"\n")
    kinds = {"place": pl.Float64, "value": pl.Float64}
    try:
        frame = pl.read_csv(cells, has_header=False, schema=kinds, quote_char=None)[1:]
    except pl.exceptions.PolarsError:
        return None
    place, values = frame["place"], frame["value"]
    starts = np.flatnonzero(values.is_null().to_numpy())
    n_entries = frame.height - starts.size
    if place.null_count() or starts.size != n_lines or n_entries != text.count(b":"):
        return None
    places = place.to_numpy()
    entry = np.ones(frame.height, dtype=bool)
    entry[starts] = False
    columns = places[entry]
    pointers = np.append(starts - np.arange(starts.size), n_entries)
    ascending = np.diff(columns) > 0
    ascending[pointers[1:-1][(pointers[1:-1] > 0) & (pointers[1:-1] < n_entries)] - 1] = True
    whole = (columns == np.floor(columns)) & (columns >= 0) & (columns < 2.0**53)
    if not (n_entries and starts[0] == 0 and ascending.all() and whole.all()):
        return None
    indices = columns.astype(np.int64)
    shape = starts.size, int(indices.max()) + 1
    X = sp.csr_matrix((values.to_numpy()[entry], indices, pointers), shape=shape)
    return X, places[starts]
