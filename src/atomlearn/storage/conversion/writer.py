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
from atomlearn.core import write_whole
from atomlearn.storage.conversion.journal import Workplace
from atomlearn.storage.formats.flat import cuts_of_entries
from atomlearn.storage.formats.table import tidy_target
from atomlearn.storage.store import store_file as store
from atomlearn.storage.store.encoding import pack
from atomlearn.storage.store.store_file import READING


class StoreWriter:
    """Writes the files of a column store, from the first column to the last.

    Parameters
    ----------
    work : Workplace
        Folder of the conversion.
    n_samples : int
        Number of rows.
    kind : str
        Type of the values ("genotype": two bits).
    sparse : bool
        Whether columns are stored as entries.
    """

    def __init__(self, work: Workplace, n_samples: int, kind: str, sparse: bool) -> None:
        self.work = work
        self.n_samples = n_samples
        self.kind = kind
        self.sparse = sparse
        self.row_dtype = np.dtype(np.int32 if n_samples < 2**31 else np.int64)
        self._files = [work.folder / name for name in (store.VALUES, store.ROWS)[: 1 + sparse]]
        for file in self._files:
            file.write_bytes(b"")
        #: End of each chunk, its checksums, and lengths of columns or counts of genotypes.
        self._ends, self._sums, self._notes = [0], list[list[int]](), list[NDArray[np.int64]]()

    @property
    def column_bytes(self) -> int:
        """Bytes of a dense column."""
        if self.kind == "genotype":
            return (self.n_samples + 3) // 4
        return self.n_samples * np.dtype(self.kind).itemsize

    def dense(self, X: NDArray[Any]) -> None:
        """Append columns (n_samples, m) in the type of the store (int8 for genotypes)."""
        if self.kind == "genotype":
            self.packed(pack(X))
            return
        flat = np.asfortranarray(X).reshape(-1, order="F")
        self._chunks(flat, self.n_samples, X.shape[1])

    def packed(self, data: NDArray[np.uint8]) -> None:
        """Append columns of genotypes in PLINK's code."""
        self._chunks(data, self.column_bytes, data.size // self.column_bytes)

    def _chunks(self, flat: NDArray[Any], length: int, n_columns: int) -> None:
        """Append columns in chunks; ``flat`` has ``length`` elements of each, one after another."""
        width = max(1, READING.chunk_bytes // max(self.column_bytes, 1))
        for first in range(0, n_columns, width):
            end = min(first + width, n_columns)
            chunk = flat[first * length : end * length]
            self._append(end - first, chunk)
            if self.kind == "genotype":
                counts = _kernels.count_genotypes(chunk, self.n_samples, end - first)
                self._notes.append(counts)

    def entries(self, values: NDArray[Any], rows: NDArray[Any], starts: NDArray[np.int64]) -> None:
        """Append m sparse columns in CSC layout: values, row numbers, column pointers (m + 1,)."""
        target = max(1, READING.chunk_bytes // (values.itemsize + self.row_dtype.itemsize))
        self._notes.append(np.diff(starts))
        for first, end in pairwise(cuts_of_entries(starts, 0, target).tolist()):
            chunk = slice(int(starts[first]), int(starts[end]))
            row_numbers = rows[chunk].astype(self.row_dtype, copy=False)
            self._append(end - first, values[chunk], row_numbers)

    def _append(self, n_columns: int, *arrays: NDArray[Any]) -> None:
        """Append a chunk to the files."""
        views = [store.as_bytes(np.ascontiguousarray(array)) for array in arrays]
        for file, view in zip(self._files, views, strict=True):
            with file.open("ab") as stream:
                stream.write(view)
        self._ends.append(self._ends[-1] + n_columns)
        self._sums.append([zlib.crc32(view) for view in views])

    def finish(
        self,
        names: Sequence[str] | None,
        target: NDArray[Any] | None,
        source: str,
        first_index: int = 0,
        plans: Sequence[Any] = (),
        symbols: Mapping[str, str] | None = None,
    ) -> store.Manifest:
        """Write the small files and the manifest."""
        for file in self._files:
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
        small: dict[str, bytes | memoryview] = {}
        sums = np.array(self._sums, dtype="<u4").T.tobytes()
        small[store.CHUNKS] = np.array(self._ends, dtype="<i8").tobytes() + sums
        nonzeros = 0
        if self.sparse:
            starts = np.cumsum(np.concatenate([[0], *self._notes]), dtype="<i8")
            small[store.STARTS], nonzeros = starts.data, int(starts[-1])
        if self.kind == "genotype":
            small[store.COUNTS] = np.concatenate(self._notes).astype("<i8").data
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
            n_chunks=len(self._sums),
            row_dtype=self.row_dtype.name if self.sparse else "",
            nonzeros=nonzeros,
            first_index=first_index,
            checksums={name: zlib.crc32(content) for name, content in small.items()},
            source=source,
        )
        write_whole(self.work.folder / store.MANIFEST, manifest.to_json().encode())
        return manifest


def _target_files(target: NDArray[Any]) -> dict[str, bytes]:
    """Return the files of a target: numbers, or codes and their labels."""
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
