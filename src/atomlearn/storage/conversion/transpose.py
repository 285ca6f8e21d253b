"""Rows to columns in bounded memory: an external transposition in two phases.

First, rows are collected into blocks of a fraction of the memory allowed; each is transposed in
memory and spilled, column after column, to a file written in one go. Then columns are taken in
buckets of a fraction of the memory: a bucket is one contiguous piece of each block. All files are
written and read in order; a block of M bytes and N bytes in all mean N/M pieces a bucket of
M * M / N bytes each, so a gigabyte transposes a hundred in pieces of ten megabytes.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core.data.compressed import is_sparse
from atomlearn.storage.conversion.journal import SHARING, Workplace, sync_folder
from atomlearn.storage.conversion.writer import StoreWriter
from atomlearn.storage.formats.sources import RowPiece, RowSource
from atomlearn.storage.store.encoding import encode
from atomlearn.storage.store.store_file import as_bytes


class Transposition:
    """The rows of a source, spilled by blocks, then written by columns.

    ``state["rows"]`` : position in the source, rows so far, and (rows, columns, entries) of each
    block; ``state["all_rows"]`` once no more come.
    """

    def __init__(self, work: Workplace, source: RowSource, kind: str, memory: int) -> None:
        self.work, self.source, self.kind, self.memory = work, source, kind, memory
        self._unsynced: list[Path] = []
        self.spilled = np.dtype(np.int8 if kind == "genotype" else kind)

    # --- rows in ------------------------------------------------------------------------------

    def collect(self) -> None:
        """Spill all rows; goes on where a conversion that was cut short had come to."""
        rows = self.work.state.get("rows", {"position": 0, "n": 0, "blocks": []})
        if self.work.state.get("all_rows"):
            return
        limit = max(self.memory // SHARING.pieces, 1)
        pieces: list[RowPiece] = []
        held = 0
        first = int(rows["n"])
        for piece in self.source.pieces(int(rows["position"]), max(limit // 4, 1)):
            encoded = self._encoded(piece.X, first)
            first += encoded.shape[0]
            pieces.append(RowPiece(encoded, piece.y, piece.position))
            held += _bytes(encoded)
            if held >= limit:
                self._spill(pieces, rows)
                pieces, held = [], 0
        if pieces:
            self._spill(pieces, rows)
        self._record()
        self.work.commit(all_rows=True)

    def _encoded(self, X: Any, first_row: int) -> Any:
        if not is_sparse(X):
            return encode(X, self.kind, first_row)
        X = sp.csr_array(X)
        X.sum_duplicates()
        X = X.tocoo()
        X.data = encode(X.data, self.kind, X.row + first_row, X.col)
        return X

    def _spill(self, pieces: list[RowPiece], rows: dict[str, Any]) -> None:
        """Write one block and put it on record."""
        number, parts = len(rows["blocks"]), [piece.X for piece in pieces]
        n_rows, width = sum(X.shape[0] for X in parts), max(X.shape[1] for X in parts)
        if is_sparse(parts[0]):
            ends = np.cumsum([X.shape[0] for X in parts]).tolist()
            within = [X.row + end - X.shape[0] for X, end in zip(parts, ends, strict=True)]
            rows_of, columns = np.concatenate(within), np.concatenate([X.col for X in parts])
            data = np.concatenate([X.data for X in parts])
            values, places, starts = by_columns(data, rows_of, columns, (n_rows, width))
            every = np.arange(width, dtype=np.min_scalar_type(width))
            self._write(number, "columns", np.repeat(every, np.diff(starts)))
            self._write(number, "rows", places.astype(np.min_scalar_type(n_rows)))
            self._write(number, "values", values)
            entries = values.size
        else:
            self._write(number, "values", np.concatenate(parts).reshape(-1, order="F"))
            entries = n_rows * width
        if pieces[0].y is not None:
            target = np.concatenate([piece.y for piece in pieces if piece.y is not None])
            with self._file(number, "y").open("wb") as stream:
                np.save(stream, target, allow_pickle=False)
            self._unsynced.append(self._file(number, "y"))
        rows["blocks"] = [*rows["blocks"], [n_rows, width, entries]]
        rows["n"], rows["position"] = int(rows["n"]) + n_rows, pieces[-1].position
        self.work.state["rows"] = rows
        if self.work.is_due:
            self._record()

    def _record(self) -> None:
        """Put the blocks spilled so far on record, once their files are on disk."""
        for path in self._unsynced:
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
        self._unsynced.clear()
        sync_folder(self.work.spill("").parent)
        self.work.commit()

    def _write(self, number: int, what: str, array: NDArray[Any]) -> None:
        path = self._file(number, what)
        with path.open("wb") as stream:
            stream.write(as_bytes(np.ascontiguousarray(array)))
        self._unsynced.append(path)

    def _file(self, number: int, what: str) -> Path:
        return self.work.spill(f"{number:06d}.{what}")

    # --- columns out --------------------------------------------------------------------------

    @property
    def blocks(self) -> list[tuple[int, int, int]]:
        """(rows, columns, entries) of each block."""
        return [(int(n), int(p), int(m)) for n, p, m in self.work.state["rows"]["blocks"]]

    @property
    def n_samples(self) -> int:
        """Rows of all blocks."""
        return int(self.work.state["rows"]["n"]) if "rows" in self.work.state else 0

    def targets(self) -> NDArray[Any] | None:
        """Return the targets that came with the rows."""
        files = [self._file(number, "y") for number in range(len(self.blocks))]
        if not files or not files[0].exists():
            return None
        return np.concatenate([np.load(file, allow_pickle=False) for file in files])

    def _type(self, number: int, what: str) -> np.dtype[Any]:
        n_rows, width, _ = self.work.state["rows"]["blocks"][number]
        sizes = {"rows": n_rows, "columns": width}
        return np.dtype(np.min_scalar_type(sizes[what])) if what in sizes else self.spilled

    def _spilled(self, number: int, what: str) -> NDArray[Any]:
        """Return what was spilled of a block: read as it is looked at, let go with the array."""
        path, dtype, count = (
            self._file(number, what),
            self._type(number, what),
            self.blocks[number][2],
        )
        if path.stat().st_size != count * dtype.itemsize:
            raise ValueError(f"{path} is shorter than its journal says; remove its folder")
        return np.memmap(path, dtype, "r") if count else np.zeros(0, dtype)

    def write_dense(self, writer: StoreWriter) -> None:
        """Append all columns that are not yet written, a bucket at a time."""
        blocks, n_features = self.blocks, self.blocks[0][1]
        width = max(1, self.memory // SHARING.pieces // (self.n_samples * self.spilled.itemsize))
        while writer.next_column < n_features:
            part = slice(writer.next_column, min(writer.next_column + width, n_features))
            bucket = np.empty((self.n_samples, part.stop - part.start), self.spilled, order="F")
            row = 0
            for number, (n_rows, _, _) in enumerate(blocks):
                block = self._spilled(number, "values").reshape(n_rows, -1, order="F")
                bucket[row : row + n_rows] = block[:, part]
                row += n_rows
            writer.dense(bucket)
            writer.commit()

    def starts(self, drops_first: bool) -> tuple[NDArray[np.int64], int]:
        """Return where the entries of each column start, and 1 where column 0 is none (0 else).

        One number more than there are columns; column by column, an array this long is held once.
        """
        width = max((width for _, width, _ in self.blocks), default=0)
        starts = np.zeros(width + 1, dtype=np.int64)
        for number in range(len(self.blocks)):
            starts[1:] += np.bincount(self._spilled(number, "columns"), minlength=width)
        dropped = int(drops_first and width > 1 and starts[1] == 0)
        np.cumsum(starts, out=starts)
        return starts[dropped:], dropped

    def write_sparse(self, writer: StoreWriter, starts: NDArray[np.int64], dropped: int) -> None:
        """Append all columns that are not yet written, a bucket at a time."""
        limit = max(1, self.memory // SHARING.pieces // (self.spilled.itemsize + 8))
        edges, last = [writer.next_column], starts.size - 1
        while edges[-1] < last:
            end = int(np.searchsorted(starts, starts[edges[-1]] + limit, side="right")) - 1
            edges.append(max(end, edges[-1] + 1))
        cuts = np.array(edges) + dropped
        # Where the columns of each bucket begin in each block.
        begins = [
            np.searchsorted(self._spilled(number, "columns"), cuts)
            for number in range(len(self.blocks))
        ]
        for bucket, (first, end) in enumerate(pairwise(edges)):
            parts = [(int(places[bucket]), int(places[bucket + 1])) for places in begins]
            columns, rows, values = self._entries(parts)
            shape = self.n_samples, end - first
            made = by_columns(values, rows, columns.astype(np.int64) - cuts[bucket], shape)
            writer.entries(*made[:2], starts[first : end + 1] - starts[first])
            writer.commit()

    def _entries(self, parts: list[tuple[int, int]]) -> list[NDArray[Any]]:
        """Return columns, rows and values of the entries from one to another of each block."""
        found: list[list[NDArray[Any]]] = [[], [], []]
        first_row = 0
        for number, ((begin, end), (n_rows, _, _)) in enumerate(
            zip(parts, self.blocks, strict=True)
        ):
            for kept, what in zip(found, ("columns", "rows", "values"), strict=True):
                path, dtype = self._file(number, what), self._type(number, what)
                start = begin * dtype.itemsize
                kept.append(np.fromfile(path, dtype, end - begin, offset=start))
            found[1][-1] = found[1][-1].astype(np.int64) + first_row
            first_row += n_rows
        return [np.concatenate(kept) for kept in found]


def by_columns(
    values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return values, rows and starts of entries given by increasing rows: SciPy counts them."""
    # It has no half precision: values are told by their places.
    made = sp.coo_array((np.arange(values.size), (rows, columns)), shape=shape).tocsc()
    return values[made.data], made.indices, made.indptr


def _bytes(X: Any) -> int:
    return int(X.data.nbytes + X.row.nbytes + X.col.nbytes if is_sparse(X) else X.nbytes)
