"""Rows to columns in bounded memory: an external transposition in two phases.

First, rows are collected into blocks of a fraction of the memory allowed; each is transposed in
memory and spilled, column after column, to a file written in one go. Then columns are taken in
buckets of a fraction of the memory: a bucket is one contiguous piece of each block. All files are
written and read in order; a block of M bytes and N bytes in all mean N/M pieces a bucket of
M * M / N bytes each, so a gigabyte transposes a hundred in pieces of ten megabytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core.data.compressed import is_sparse
from atomlearn.storage.conversion.journal import Workplace, sync_folder
from atomlearn.storage.conversion.sharing import SHARING
from atomlearn.storage.conversion.writer import StoreWriter
from atomlearn.storage.formats.sources import RowPiece, RowSource
from atomlearn.storage.store.encoding import encode
from atomlearn.storage.store.store_file import ByteFile, as_bytes


class Transposition:
    """The rows of a source, spilled by blocks, then written by columns.

    ``state["rows"]`` : position in the source, rows so far, and (rows, columns) of each block;
    ``state["all_rows"]`` once no more come.
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
        limit = max(self.memory // SHARING.blocks, 1)
        pieces: list[RowPiece] = []
        held = 0
        first = int(rows["n"])
        for piece in self.source.pieces(int(rows["position"]), max(limit // 4, 1)):
            encoded = self._encoded(piece, first + sum(part.X.shape[0] for part in pieces))
            pieces.append(encoded)
            held += _bytes(encoded.X)
            if held >= limit:
                first = self._spill(pieces, rows)
                pieces, held = [], 0
        if pieces:
            self._spill(pieces, rows)
        self._record()
        self.work.commit(all_rows=True)

    def _encoded(self, piece: RowPiece, first_row: int) -> RowPiece:
        if not is_sparse(piece.X):
            return RowPiece(encode(piece.X, self.kind, first_row), piece.y, piece.position)
        X = sp.csr_array(piece.X)
        X.sum_duplicates()
        try:
            data = encode(X.data, self.kind)
        except ValueError:
            # Say where: the entry's place in the file, not among the entries.
            for row in range(X.shape[0]):
                part = X.data[X.indptr[row] : X.indptr[row + 1]]
                for place, column in enumerate(X.indices[X.indptr[row] : X.indptr[row + 1]]):
                    encode(part[place : place + 1], self.kind, first_row + row, int(column))
            raise
        made = sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
        return RowPiece(made, piece.y, piece.position)

    def _spill(self, pieces: list[RowPiece], rows: dict[str, Any]) -> int:
        """Write one block and put it on record; return the number of rows so far."""
        number = len(rows["blocks"])
        n_rows = sum(piece.X.shape[0] for piece in pieces)
        if is_sparse(pieces[0].X):
            width = max(piece.X.shape[1] for piece in pieces)
            self._spill_sparse(pieces, number, width, int(rows["n"]))
        else:
            width = pieces[0].X.shape[1]
            block = np.concatenate([piece.X for piece in pieces])
            self._write(self._file(number, "values"), block.reshape(-1, order="F"))
        if pieces[0].y is not None:
            target = np.concatenate([piece.y for piece in pieces if piece.y is not None])
            with self._file(number, "y").open("wb") as stream:
                np.save(stream, target, allow_pickle=False)
            self._unsynced.append(self._file(number, "y"))
        rows["blocks"] = [*rows["blocks"], [n_rows, width]]
        rows["n"], rows["position"] = int(rows["n"]) + n_rows, pieces[-1].position
        self.work.state["rows"] = rows
        if self.work.is_due:
            self._record()
        return int(rows["n"])

    def _spill_sparse(
        self, pieces: list[RowPiece], number: int, width: int, first_row: int
    ) -> None:
        for piece in pieces:
            piece.X.resize((piece.X.shape[0], width))
        values = np.concatenate([piece.X.data for piece in pieces])
        # SciPy has no half precision: values are told by their places.
        for piece in pieces:
            piece.X.data = np.zeros(piece.X.nnz, dtype=np.int8)
        stacked = sp.vstack([piece.X for piece in pieces], format="csr")
        stacked.data = np.arange(values.size, dtype=np.int64)
        block = stacked.tocsc()
        block.sort_indices()
        counts = np.diff(block.indptr)
        columns = np.flatnonzero(counts)
        self._write(self._file(number, "values"), values[block.data])
        self._write(self._file(number, "rows"), block.indices.astype(np.int64) + first_row)
        self._write(self._file(number, "columns"), columns.astype(np.int64))
        self._write(self._file(number, "counts"), counts[columns].astype(np.int64))

    def _record(self) -> None:
        """Put the blocks spilled so far on record, once their files are on disk."""
        for path in self._unsynced:
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
        self._unsynced.clear()
        sync_folder(self.work.spill("").parent)
        self.work.commit()

    def _write(self, path: Path, array: NDArray[Any]) -> None:
        with path.open("wb") as stream:
            stream.write(as_bytes(np.ascontiguousarray(array)))
        self._unsynced.append(path)

    def _file(self, number: int, what: str) -> Path:
        return self.work.spill(f"{number:06d}.{what}")

    # --- columns out --------------------------------------------------------------------------

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """(rows, columns) of each block."""
        return [(int(n), int(p)) for n, p in self.work.state["rows"]["blocks"]]

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

    def write_dense(self, writer: StoreWriter) -> None:
        """Append all columns that are not yet written, a bucket at a time."""
        n_samples, n_features = self.n_samples, self.blocks[0][1]
        column_bytes = n_samples * self.spilled.itemsize
        width = max(1, self.memory // 3 // column_bytes)
        files = [ByteFile(self._file(number, "values")) for number in range(len(self.blocks))]
        while writer.next_column < n_features:
            first = writer.next_column
            count = min(width, n_features - first)
            bucket = np.empty((n_samples, count), dtype=self.spilled, order="F")
            row = 0
            for file, (n_rows, _) in zip(files, self.blocks, strict=True):
                part = np.empty((n_rows, count), dtype=self.spilled, order="F")
                file.read_into(first * n_rows * self.spilled.itemsize, part)
                bucket[row : row + n_rows] = part
                row += n_rows
            writer.dense(bucket)
            writer.commit()

    def starts(self, drops_first: bool) -> tuple[NDArray[np.int64], int]:
        """Return where the entries of each column start, and 1 where column 0 is none (0 else).

        One number more than there are columns; column by column, an array this long is held once.
        """
        width = max((width for _, width in self.blocks), default=0)
        starts = np.zeros(width + 1, dtype=np.int64)
        for number in range(len(self.blocks)):
            for columns, counts, _ in self._lists(number):
                starts[columns + 1] += counts
        dropped = int(drops_first and width > 1 and starts[1] == 0)
        np.cumsum(starts, out=starts)
        return starts[dropped:], dropped

    def write_sparse(self, writer: StoreWriter, starts: NDArray[np.int64], dropped: int) -> None:
        """Append all columns that are not yet written, a bucket at a time."""
        size = starts.size - 1
        limit = max(1, self.memory // 2 // SHARING.entry_bytes)
        first = writer.next_column
        edges = [first]
        while edges[-1] < size:
            end = int(np.searchsorted(starts, starts[edges[-1]] + limit, side="right")) - 1
            end = min(end, edges[-1] + SHARING.columns)
            edges.append(min(max(end, edges[-1] + 1), size))
        pieces = [self._pieces(number, np.array(edges) + dropped)
                  for number in range(len(self.blocks))]  # fmt: skip
        for bucket in range(len(edges) - 1):
            begin, end = edges[bucket], edges[bucket + 1]
            count = int(starts[end] - starts[begin])
            values = np.empty(count, dtype=self.spilled)
            rows = np.empty(count, dtype=writer.row_dtype)
            # Where the next entry of each column goes: in the end, where the next column begins.
            own = np.zeros(end - begin + 1, dtype=np.int64)
            np.subtract(starts[begin:end], starts[begin], out=own[1:])
            for number in range(len(self.blocks)):
                self._place(number, pieces[number][bucket], begin + dropped, own[1:], values, rows)
            writer.entries(values, rows, own)
            writer.commit()

    def _place(
        self,
        number: int,
        piece: tuple[int, int, int, int],
        begin: int,
        free: NDArray[np.int64],
        values: NDArray[Any],
        rows: NDArray[Any],
    ) -> None:
        """Put a block's entries of a bucket where they belong; ``free`` moves on."""
        first_list, end_list, first_entry, end_entry = piece
        count = end_entry - first_entry
        if not count:
            return
        columns = _slice(self._file(number, "columns"), np.dtype(np.int64), first_list, end_list)
        counts = _slice(self._file(number, "counts"), np.dtype(np.int64), first_list, end_list)
        columns = columns - begin
        places = np.repeat(free[columns] - (np.cumsum(counts) - counts), counts)
        places += np.arange(count)
        values[places] = _slice(self._file(number, "values"), self.spilled, first_entry, end_entry)
        rows[places] = _slice(
            self._file(number, "rows"), np.dtype(np.int64), first_entry, end_entry
        )
        free[columns] += counts

    def _lists(self, number: int) -> Iterator[tuple[NDArray[Any], NDArray[Any], int]]:
        """Yield the columns that a block has entries of, how many, and their place in the list."""
        total = self._file(number, "columns").stat().st_size // 8
        step = max(1, self.memory // SHARING.blocks // 16)
        for start in range(0, total, step):
            end = min(start + step, total)
            columns = _slice(self._file(number, "columns"), np.dtype(np.int64), start, end)
            counts = _slice(self._file(number, "counts"), np.dtype(np.int64), start, end)
            yield columns, counts, start

    def _pieces(self, number: int, edges: NDArray[np.int64]) -> list[tuple[int, int, int, int]]:
        """Return for each bucket where its part of a block's lists and entries begins and ends."""
        at_list = np.zeros(edges.size, dtype=np.int64)
        at_entry = np.zeros(edges.size, dtype=np.int64)
        entries = 0
        for columns, counts, start in self._lists(number):
            places = np.searchsorted(columns, edges)
            sums = np.append(0, np.cumsum(counts))
            inside = (places > 0) | (start == 0)
            at_list[inside] = start + places[inside]
            at_entry[inside] = entries + sums[places[inside]]
            entries += int(sums[-1])
        return [
            (int(at_list[b]), int(at_list[b + 1]), int(at_entry[b]), int(at_entry[b + 1]))
            for b in range(edges.size - 1)
        ]


def _bytes(X: Any) -> int:
    if is_sparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def _slice(path: Path, dtype: np.dtype[Any], start: int, end: int) -> NDArray[Any]:
    found = np.fromfile(path, dtype=dtype, count=end - start, offset=start * dtype.itemsize)
    if found.size != end - start:
        raise ValueError(f"{path} is shorter than its journal says; remove its folder")
    return found
