"""External (out-of-core) transposition of rows to columns in bounded memory, in two phases.

First, rows are collected into blocks that fit into a fraction of the memory. Each block is
transposed in memory and written to a temporary file in column-major order. Then the columns are
read in buckets: a bucket is a group of neighboring columns that fits into memory, and one
contiguous range of each block. All files are written and read sequentially. With N bytes of data
and blocks of M bytes, a bucket consists of N / M ranges of M * M / N bytes each, so that 1 GB of
memory transposes 100 GB in ranges of 10 MB.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn._support import sync_folder
from atomlearn.core import is_sparse
from atomlearn.storage.conversion.journal import PIECES, Workplace
from atomlearn.storage.conversion.writer import StoreWriter
from atomlearn.storage.formats.flat import cuts_of_entries
from atomlearn.storage.formats.format import RowPiece, RowSource, stacked
from atomlearn.storage.store.encoding import encode_values


class Transposition:
    """An external transposition: rows are written to temporary blocks, then read by columns.

    Its progress is in the journal: ``state["rows"]`` has the position in the source, the number of
    rows and columns so far, and the number of rows of each block; ``state["all_rows"]`` is set
    after the last row.

    Parameters
    ----------
    work : Workplace
        Folder and journal of the conversion.
    source : RowSource
        The data, read by rows.
    kind : str
        Type of the values in the store.
    memory : int
        Bytes of memory to use.
    """

    def __init__(self, work: Workplace, source: RowSource, kind: str, memory: int) -> None:
        """Resume from the journal of ``work``, or begin with no rows.

        ``source`` has the rows, ``kind`` is the type of the stored values, ``memory`` is in bytes.
        """
        self.work = work
        self.source = source
        self.kind = kind
        # Bytes of a block: the parser and the transposed copy need the rest of the memory.
        self.limit = max(memory // PIECES, 1)
        self.rows = work.state.get("rows", {"position": 0, "n": 0, "width": 0, "blocks": []})

    @property
    def n_samples(self) -> int:
        """Rows of all blocks."""
        return int(self.rows["n"])

    # --- rows in ------------------------------------------------------------------------------

    def collect(self) -> None:
        """Write all rows to temporary files; resume after the last block that is complete."""
        if self.work.state.get("all_rows"):
            return
        # Rows of the next block, and their size in memory.
        pieces: list[RowPiece] = []
        n_bytes = 0
        first = self.n_samples
        # Pieces are smaller than a block, so that a block hardly exceeds the limit.
        for piece in self.source.pieces(int(self.rows["position"]), max(self.limit // 4, 1)):
            X = self._encoded(piece.X, first)
            first += X.shape[0]
            pieces.append(RowPiece(X, piece.y, piece.position))
            # A sparse entry has a row and a column number next to its value.
            n_bytes += 3 * X.data.nbytes if is_sparse(X) else X.nbytes
            if n_bytes >= self.limit:
                self._spill(pieces)
                pieces = []
                n_bytes = 0
        if pieces:
            self._spill(pieces)
        self.work.commit(all_rows=True)

    def _encoded(self, X: Any, first_row: int) -> Any:
        """Return the rows X in the type of the store, sparse ones without repeated entries.

        ``first_row`` is the number of the first row in the file, for messages.
        """
        if not is_sparse(X):
            return encode_values(X, self.kind, first_row)
        X = sp.csr_array(X)
        X.sum_duplicates()
        rows, columns = X.tocoo().coords
        data = encode_values(X.data, self.kind, rows + first_row, columns)
        # SciPy does not support half precision.
        X.data = data.astype(np.float32) if data.dtype == np.float16 else data
        return X

    def _spill(self, pieces: list[RowPiece]) -> None:
        """Write the rows in ``pieces`` as one block to files, then record it in the journal.

        A sparse block is written as three arrays in the order of columns: the column, the row and
        the value of each entry. Targets, if the rows have them, are one more array.
        """
        rows = self.rows
        matrices = [piece.X for piece in pieces]
        block = stacked(matrices, "csc")
        n_rows, width = block.shape
        if is_sparse(block):
            self._write("columns", np.repeat(np.arange(width), np.diff(block.indptr)))
            self._write("rows", block.indices.astype(np.int64) + self.n_samples)
            self._write("values", block.data)
        else:
            self._write("values", np.asfortranarray(block))
        if pieces[0].y is not None:
            self._write("y", np.concatenate([piece.y for piece in pieces if piece.y is not None]))
        rows["blocks"] = [*rows["blocks"], n_rows]
        rows["width"] = max(int(rows["width"]), width)
        rows["n"] = self.n_samples + n_rows
        rows["position"] = pieces[-1].position
        # The new files must be on disk before the journal mentions them.
        sync_folder(self.work.temporary("").parent)
        self.work.commit(rows=rows)

    def _write(self, name: str, array: NDArray[Any]) -> None:
        """Write one array of the next block to a temporary file.

        ``name`` is "columns", "rows", "values" or "y". Indices are stored in the smallest integer
        type that holds them.
        """
        if name in ("columns", "rows"):
            array = array.astype(np.min_scalar_type(array.max(initial=0)))
        path = self._file(len(self.rows["blocks"]), name)
        with path.open("wb") as stream:
            header = np.lib.format.header_data_from_array_1_0(array)
            np.lib.format.write_array_header_1_0(stream, header)
            # The array is written by Python, whose error reports a full disk; that of np.save does
            # not.
            stream.write(array.ravel("K").data)
            stream.flush()
            os.fsync(stream.fileno())

    def _file(self, number: int, name: str) -> Path:
        """Return the path of the temporary file of the array ``name`` of block ``number``."""
        return self.work.temporary(f"{number:06d}.{name}.npy")

    # --- columns out --------------------------------------------------------------------------

    def _spilled(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield the array ``name`` ("columns", "rows", "values" or "y") of each block.

        The arrays are memory-mapped: only the parts that are used are read.
        """
        for number in range(len(self.rows["blocks"])):
            yield np.load(self._file(number, name), mmap_mode="r", allow_pickle=False)

    def targets(self) -> NDArray[Any] | None:
        """Return the targets (n_samples,) that the source gave with the rows, or None."""
        return np.concatenate([*self._spilled("y")]) if self._file(0, "y").exists() else None

    def write_dense(self, writer: StoreWriter) -> None:
        """Write all dense columns to the store by ``writer``, one bucket after the other."""
        # Columns of a bucket: as many as fit into the limit with all their rows.
        itemsize = next(self._spilled("values")).itemsize
        width = max(1, self.limit // (itemsize * self.n_samples))
        for start in range(0, self.rows["width"], width):
            columns = slice(start, start + width)
            writer.dense(np.concatenate([block[:, columns] for block in self._spilled("values")]))

    def starts(self, drops_first: bool) -> tuple[NDArray[np.int64], int]:
        """Return the CSC column pointers, and the number of leading columns that are dropped.

        With ``drops_first``, an empty column 0 is dropped (libsvm counts columns from 1), and the
        number is 1; else 0. Only one array of this length is in memory at a time.
        """
        width = int(self.rows["width"])
        starts = np.zeros(width + 1, dtype=np.int64)
        for columns in self._spilled("columns"):
            starts[1:] += np.bincount(columns, minlength=width)
        dropped = int(drops_first and width > 1 and starts[1] == 0)
        np.cumsum(starts, out=starts)
        return starts[dropped:], dropped

    def write_sparse(self, writer: StoreWriter, starts: NDArray[np.int64], dropped: int) -> None:
        """Write all sparse columns to the store by ``writer``, one bucket after the other.

        ``starts`` and ``dropped`` are the result of the method ``starts``.
        """
        # Columns at which buckets begin: without the dropped column, and as numbered in the file.
        # A bucket has ``limit`` bytes, at 16 bytes for the value and the row of an entry.
        edges = cuts_of_entries(starts, 0, max(1, self.limit // 16))
        cuts = edges + dropped
        # First entry of each bucket in each block, whose entries are in the order of columns.
        begins = [np.searchsorted(columns, cuts) for columns in self._spilled("columns")]
        for bucket, (first, end) in enumerate(pairwise(edges.tolist())):
            # The entries of this bucket, joined over all blocks.
            columns, rows, values = (
                np.concatenate(
                    [
                        array[begin[bucket] : begin[bucket + 1]]
                        for array, begin in zip(self._spilled(name), begins, strict=True)
                    ]
                )
                for name in ("columns", "rows", "values")
            )
            # They are in the order of blocks; CSC puts them in the order of columns.
            coordinates = rows, columns.astype(np.int64) - cuts[bucket]
            matrix = sp.coo_array(
                (values, coordinates), shape=(self.n_samples, end - first)
            ).tocsc()
            pointers = starts[first : end + 1] - starts[first]
            writer.entries(matrix.data.astype(self.kind), matrix.indices, pointers)
