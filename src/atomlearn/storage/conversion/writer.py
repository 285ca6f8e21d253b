"""Columns in order, cut into chunks, to the files of a store; what is written is in the journal."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.storage.conversion.journal import Appended, Workplace, write_safely
from atomlearn.storage.formats.table import tidy_target
from atomlearn.storage.store import store_file as store
from atomlearn.storage.store.encoding import pack
from atomlearn.storage.store.store_file import READING


class StoreWriter:
    """The files of a store of n_samples rows, from column ``next_column`` on.

    kind : type of the values ("genotype": two bits); sparse : whether columns are stored as
    their entries. ``state["written"]`` : columns written for good, and the sizes of the files.
    """

    def __init__(self, work: Workplace, n_samples: int, kind: str, sparse: bool) -> None:
        self.work, self.n_samples, self.kind, self.sparse = work, n_samples, kind, sparse
        written = work.state.get("written", {"column": 0, "chunks": 0, "sizes": {}})
        self.next_column, self.n_chunks = int(written["column"]), int(written["chunks"])
        self.row_dtype = np.dtype(np.int32 if n_samples < 2**31 else np.int64)
        names = [store.VALUES, *([store.ROWS] if sparse else [])]
        notes = "chunks", "counts", "lengths"
        paths = {name: work.folder / name for name in names}
        paths |= {name: work.spill(name) for name in notes}
        sizes = written["sizes"]
        #: What the store consists of, and notes: the end and checksums of each chunk, counts or
        #: lengths of columns.
        self._files = {name: Appended(path, sizes.get(name, 0)) for name, path in paths.items()}

    @property
    def column_bytes(self) -> int:
        """Bytes of a dense column."""
        if self.kind == "genotype":
            return (self.n_samples + 3) // 4
        return self.n_samples * np.dtype(self.kind).itemsize

    @property
    def bucket_bytes(self) -> int:
        """Bytes of a dense column before it is packed."""
        return self.n_samples if self.kind == "genotype" else self.column_bytes

    def dense(self, X: NDArray[Any]) -> None:
        """Append columns, (n_samples, m), in the type of the store (int8 for genotypes)."""
        if self.kind == "genotype":
            self.packed(pack(X))
            return
        flat = np.asfortranarray(X).reshape(-1, order="F")
        self._chunks(flat, self.n_samples, X.shape[1])

    def packed(self, data: NDArray[np.uint8]) -> None:
        """Append columns of genotypes in PLINK's code."""
        self._chunks(data, self.column_bytes, data.size // self.column_bytes)

    def _chunks(self, flat: NDArray[Any], length: int, n_columns: int) -> None:
        width = max(1, READING.chunk_bytes // max(self.column_bytes, 1))
        for first in range(0, n_columns, width):
            end = min(first + width, n_columns)
            part = flat[first * length : end * length]
            sums = [self._files[store.VALUES].append(part)]
            if self.kind == "genotype":
                counts = _kernels.count_genotypes(part, self.n_samples, end - first)
                self._files["counts"].append(counts.astype("<i8"))
            self._note(self.next_column + end - first, sums)

    def entries(self, values: NDArray[Any], rows: NDArray[Any], starts: NDArray[np.int64]) -> None:
        """Append columns given by their entries; starts (m + 1,) counts from 0."""
        wanted = max(1, READING.chunk_bytes // (values.itemsize + self.row_dtype.itemsize))
        first, n_columns = 0, starts.size - 1
        self._files["lengths"].append(np.diff(starts).astype("<i8"))
        while first < n_columns:
            end = int(np.searchsorted(starts, starts[first] + wanted, side="right")) - 1
            end = min(max(end, first + 1), n_columns)
            part = slice(int(starts[first]), int(starts[end]))
            sums = [
                self._files[store.VALUES].append(values[part]),
                self._files[store.ROWS].append(rows[part].astype(self.row_dtype, copy=False)),
            ]
            self._note(self.next_column + end - first, sums)
            first = end

    def _note(self, next_column: int, sums: list[int]) -> None:
        self.next_column = next_column
        self.n_chunks += 1
        self._files["chunks"].append(np.array([next_column, *sums], dtype="<i8"))

    def commit(self, due: bool = False) -> None:
        """Put what was appended so far on record, where it is time or ``due``."""
        if not (due or self.work.is_due):
            return
        for file in self._files.values():
            file.sync()
        sizes = {name: file.size for name, file in self._files.items()}
        self.work.commit(
            written={"column": self.next_column, "chunks": self.n_chunks, "sizes": sizes}
        )

    def finish(
        self,
        names: Sequence[str] | None,
        target: NDArray[Any] | None,
        source: str,
        first_index: int = 0,
        plans: Sequence[Any] = (),
    ) -> store.Manifest:
        """Write the small files and the manifest, and give the store its name."""
        self.commit(due=True)
        for file in self._files.values():
            file.close()
        chunks = self._noted("chunks").reshape(self.n_chunks, -1)
        small: dict[str, bytes | memoryview] = {}
        sums = chunks[:, 1:].T.astype("<u4").tobytes()
        small[store.CHUNKS] = np.append(0, chunks[:, 0]).astype("<i8").tobytes() + sums
        starts = np.cumsum(np.append(0, self._noted("lengths")), dtype="<i8")
        if self.sparse:
            small[store.STARTS] = starts.data
        if self.kind == "genotype":
            small[store.COUNTS] = self._noted("counts").data
        if names is not None:
            small[store.NAMES] = json.dumps(names).encode()
        if plans:
            small[store.SCHEMA] = json.dumps([plan.portable() for plan in plans]).encode()
        if target is not None:
            small.update(_target_files(target))
        for name, content in small.items():
            write_safely(self.work.folder / name, content)
        layout = "genotypes" if self.kind == "genotype" else "csc" if self.sparse else "dense"
        manifest = store.Manifest(
            layout=layout,
            dtype=self.kind,
            n_samples=self.n_samples,
            n_features=self.next_column,
            n_chunks=self.n_chunks,
            row_dtype=self.row_dtype.name if self.sparse else "",
            nonzeros=int(starts[-1]),
            first_index=first_index,
            checksums={name: zlib.crc32(content) for name, content in small.items()},
            source=source,
        )
        write_safely(self.work.folder / store.MANIFEST, manifest.to_json().encode())
        self.work.finish()
        return manifest

    def _noted(self, name: str) -> NDArray[np.int64]:
        return np.fromfile(self.work.spill(name), dtype="<i8")


def _target_files(target: NDArray[Any]) -> dict[str, bytes]:
    """Return the files of a target: numbers, or codes with the labels they stand for."""
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
