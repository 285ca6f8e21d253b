"""Write columns in order, in chunks, to the files of a store."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn._support import write_whole
from atomlearn.storage.conversion.journal import Workplace
from atomlearn.storage.formats.flat import cuts_of_entries
from atomlearn.storage.formats.table import tidy_target
from atomlearn.storage.store import store_file as store
from atomlearn.storage.store.encoding import pack
from atomlearn.storage.store.store_file import READING


class StoreWriter:
    """Writes the files of a column store, from the first column to the last.

    Columns are written in chunks. Each chunk has a checksum; a pass over the store reads whole
    chunks. For each chunk, ``_ends`` has its end column, ``_checksums`` the checksums of its files,
    and ``_counts`` the entries of its sparse columns, or the alleles and missing genotypes.

    Parameters
    ----------
    work : Workplace
        Folder of the conversion.
    n_samples : int
        Number of rows.
    kind : str
        Type of the values ("genotype": two bits).
    sparse : bool
        Whether only the nonzero entries of columns are stored.
    """

    def __init__(self, work: Workplace, n_samples: int, kind: str, sparse: bool) -> None:
        """Create the empty files of a store of ``n_samples`` rows in the folder of ``work``.

        ``kind`` is the type of the values; ``sparse`` says that only nonzero entries are stored.
        """
        self.work = work
        self.n_samples = n_samples
        self.kind = kind
        self.sparse = sparse
        self.row_dtype = np.dtype(np.int32 if n_samples < 2**31 else np.int64)
        # Dense columns need no file of row numbers.
        self._files = [work.folder / name for name in (store.VALUES, store.ROWS)[: 1 + sparse]]
        for file in self._files:
            file.write_bytes(b"")
        self._ends = [0]
        self._checksums = list[list[int]]()
        self._counts = list[NDArray[np.int64]]()

    @property
    def column_bytes(self) -> int:
        """Bytes of a dense column."""
        if self.kind == "genotype":
            return (self.n_samples + 3) // 4
        return self.n_samples * np.dtype(self.kind).itemsize

    def dense(self, X: NDArray[Any]) -> None:
        """Append the columns X (n_samples, m), in the type of the store (int8 for genotypes)."""
        if self.kind == "genotype":
            self.packed(pack(X))
            return
        flat = np.asfortranarray(X).reshape(-1, order="F")
        self._chunks(flat, self.n_samples, X.shape[1])

    def packed(self, data: NDArray[np.uint8]) -> None:
        """Append columns of genotypes; ``data`` has their bytes in PLINK's two-bit code."""
        self._chunks(data, self.column_bytes, data.size // self.column_bytes)

    def _chunks(self, flat: NDArray[Any], length: int, n_columns: int) -> None:
        """Append ``n_columns`` columns in chunks; genotypes are counted for the statistics.

        ``flat`` has the columns one after another, with ``length`` elements each.
        """
        width = max(1, READING.chunk_bytes // max(self.column_bytes, 1))
        for first in range(0, n_columns, width):
            end = min(first + width, n_columns)
            chunk = flat[first * length : end * length]
            self._append(end - first, chunk)
            if self.kind == "genotype":
                counts = _kernels.count_genotypes(chunk, self.n_samples, end - first)
                self._counts.append(counts)

    def entries(self, values: NDArray[Any], rows: NDArray[Any], starts: NDArray[np.int64]) -> None:
        """Append m sparse columns in CSC layout.

        ``values`` and ``rows`` (row numbers) are those of the stored entries, and ``starts``
        (m + 1,) are the column pointers.
        """
        target = max(1, READING.chunk_bytes // (values.itemsize + self.row_dtype.itemsize))
        self._counts.append(np.diff(starts))
        for first, end in pairwise(cuts_of_entries(starts, 0, target).tolist()):
            chunk = slice(int(starts[first]), int(starts[end]))
            row_numbers = rows[chunk].astype(self.row_dtype, copy=False)
            self._append(end - first, values[chunk], row_numbers)

    def _append(self, n_columns: int, *arrays: NDArray[Any]) -> None:
        """Append a chunk of ``n_columns`` columns: one array for each file of the store."""
        views = [store.as_bytes(np.ascontiguousarray(array)) for array in arrays]
        for file, view in zip(self._files, views, strict=True):
            with file.open("ab") as stream:
                stream.write(view)
        self._ends.append(self._ends[-1] + n_columns)
        self._checksums.append([zlib.crc32(view) for view in views])

    def finish(
        self,
        names: Sequence[str] | None,
        target: NDArray[Any] | None,
        source: str,
        first_index: int = 0,
        plans: Sequence[Any] = (),
        symbols: Mapping[str, str] | None = None,
    ) -> store.Manifest:
        """Write the small files and the manifest, which completes the store.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the columns.
        target : (n_samples,) array, optional
            Target to store with X.
        source : str
            File name of the source.
        first_index : int
            Number of leading columns that were dropped (1 for libsvm files that count from 1).
        plans : sequence of plans
            How the columns of a table were encoded, so that new tables are encoded alike.
        symbols : mapping, optional
            A second name (symbol of a gene) by name of column.

        Returns
        -------
        store.Manifest
        """
        # The large files must be on disk before the manifest, which makes the store valid.
        for file in self._files:
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
        # The content of each small file, by its name; all numbers are little-endian.
        small: dict[str, bytes | memoryview] = {}
        sums = np.array(self._checksums, dtype="<u4").T.tobytes()
        small[store.CHUNKS] = np.array(self._ends, dtype="<i8").tobytes() + sums
        nonzeros = 0
        # Sparse columns: their counts of entries add up to column pointers.
        if self.sparse:
            starts = np.cumsum(np.concatenate([[0], *self._counts]), dtype="<i8")
            small[store.STARTS], nonzeros = starts.data, int(starts[-1])
        if self.kind == "genotype":
            small[store.COUNTS] = np.concatenate(self._counts).astype("<i8").data
        if names is not None:
            small[store.NAMES] = json.dumps(names).encode()
        if symbols and names is not None:
            of_columns = [symbols.get(name, "") for name in names]
            small[store.SYMBOLS] = json.dumps(of_columns).encode()
        if plans:
            small[store.SCHEMA] = json.dumps([plan.portable() for plan in plans]).encode()
        if target is not None:
            small.update(_target_files(target))
        for name, content in small.items():
            write_whole(self.work.folder / name, content)
        layout = "genotypes" if self.kind == "genotype" else "csc" if self.sparse else "dense"
        manifest = store.Manifest(
            layout=layout,
            dtype=self.kind,
            n_samples=self.n_samples,
            n_features=self._ends[-1],
            n_chunks=len(self._checksums),
            row_dtype=self.row_dtype.name if self.sparse else "",
            nonzeros=nonzeros,
            first_index=first_index,
            checksums={name: zlib.crc32(content) for name, content in small.items()},
            source=source,
        )
        write_whole(self.work.folder / store.MANIFEST, manifest.to_json().encode())
        return manifest


def _target_files(target: NDArray[Any]) -> dict[str, bytes]:
    """Return the content of the files of a target, by file name.

    A numeric target is one file. Labels are a file of integer codes and one of the sorted labels.
    """
    import io

    values = tidy_target(target, "the target")
    files: dict[str, bytes] = {}
    if values.dtype.kind == "U":
        labels, codes = np.unique(values, return_inverse=True)
        files[store.CLASSES] = json.dumps(labels.tolist()).encode()
        values = codes.astype(np.int64)
    stream = io.BytesIO()
    np.save(stream, values, allow_pickle=False)
    files[store.TARGET] = stream.getvalue()
    return files
