"""Arrays that are read by ranges of their entries: .npy, .npz, and any other dense or sparse."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.formats.arrays import (
    SPARSE_KEYS,
    named_target,
    names_of,
    no_matrix,
    scale_of,
    sparse_form,
    target_from_file,
)
from atomlearn.storage.formats.held import fits
from atomlearn.storage.formats.numpy_files import Archive, Header
from atomlearn.storage.formats.sources import About, ColumnSource, RowPiece, RowSource
from atomlearn.storage.formats.table import Request, sparse_size
from atomlearn.storage.formats.understood import understood

Names = Sequence[str] | None


class FlatArray:
    """An array of an .npy file, or of one in an .npz, read by ranges of its entries in order."""

    def __init__(self, path: Path, member: str | None = None) -> None:
        self.path, self.member = path, member
        if member is None:
            self._stream: BinaryIO = path.open("rb")
            stored = path.stat().st_size
        else:
            self._stream, stored = Archive(path).open(member)
        header = Header(self._stream, stored, self.name)
        self.shape, self.fortran, self.dtype = header.shape, header.fortran, header.dtype
        if self.dtype.kind not in "biuf":
            raise ValueError(f"{self.name} holds {self.dtype}; expected real numbers")
        self._begin = header.begin
        self.size = math.prod(self.shape)

    def __del__(self) -> None:
        if hasattr(self, "_stream"):
            self._stream.close()

    @property
    def name(self) -> str:
        """What messages call the array."""
        return str(self.path) if self.member is None else f"{self.member} of {self.path}"

    def read(self, start: int, count: int) -> NDArray[Any]:
        """Return entries in the order in which they are stored."""
        fits(self.name, "a piece of it", count * self.dtype.itemsize)
        with understood(self.path, "NumPy file"):
            self._stream.seek(self._begin + start * self.dtype.itemsize)
            content = self._stream.read(count * self.dtype.itemsize)
        if len(content) != count * self.dtype.itemsize:
            raise ValueError(
                f"{self.name} ends too early: {self.size:,} entries were announced; the file is "
                "cut off, copy it afresh"
            )
        return np.frombuffer(content, dtype=self.dtype)


class ArrayRows(RowSource):
    """A dense array stored by rows; positions are rows."""

    def __init__(self, array: FlatArray, names: Names, scale: Any, y: NDArray[Any] | None) -> None:
        self.array, self._scale, self.y = array, scale, y
        self.about = About(names, False, array.dtype if scale is None else np.dtype(np.float64))

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        n_rows, n_columns = self.array.shape
        step = max(1, piece_bytes // (8 * n_columns))
        for row in range(position, n_rows, step):
            count = min(step, n_rows - row)
            X = self.array.read(row * n_columns, count * n_columns).reshape(count, n_columns)
            yield RowPiece(X if self._scale is None else X / self._scale, None, row + count)


class ArrayColumns(ColumnSource):
    """A dense array stored by columns."""

    def __init__(self, array: FlatArray, names: Names, scale: Any, y: NDArray[Any] | None) -> None:
        self.array, self._scale, self.y = array, scale, y
        self.shape = (array.shape[0], array.shape[1])
        self.about = About(names, False, array.dtype if scale is None else np.dtype(np.float64))

    def columns(self, start: int, stop: int) -> NDArray[Any]:
        n_rows = self.shape[0]
        flat = self.array.read(start * n_rows, (stop - start) * n_rows)
        X = flat.reshape(n_rows, -1, order="F")
        if self._scale is None:
            return X
        scale = np.broadcast_to(self._scale, self.shape[1:])[start:stop]
        return np.asarray(X / scale)


class Compressed:
    """data, indices and indptr by ranges, whatever holds them; one datum stands for all."""

    def __init__(self, data: Any, indices: Any, indptr: NDArray[Any], n_minor: int) -> None:
        self.data, self.indices = data, indices
        self.indptr = np.asarray(indptr).astype(np.int64)
        self.n_minor = n_minor
        stored = int(indices.size)
        if (
            self.indptr[0] != 0
            or (self.indptr[1:] < self.indptr[:-1]).any()
            or int(self.indptr[-1]) > stored
        ):
            raise ValueError(
                f"the sparse array is broken: indptr goes from {self.indptr[0]} to "
                f"{self.indptr[-1]} and there are {stored} indices"
            )
        self._all_one = data.size == 1 and stored != 1

    def part(self, start: int, stop: int, by_columns: bool) -> Any:
        """Return rows (or columns) as a CSR (CSC) array, checked."""
        begin, count = int(self.indptr[start]), int(self.indptr[stop] - self.indptr[start])
        indices = self.indices.read(begin, count).astype(np.int64)
        if count and not 0 <= int(indices.min()) <= int(indices.max()) < self.n_minor:
            raise ValueError(
                f"the sparse array is broken: it has indices from {indices.min()} to "
                f"{indices.max()} where {self.n_minor} are possible"
            )
        data = self.data.read(0, 1).repeat(count) if self._all_one else self.data.read(begin, count)
        pointers = self.indptr[start : stop + 1] - begin
        if by_columns:
            return sp.csc_array((data, indices, pointers), shape=(self.n_minor, stop - start))
        return sp.csr_array((data, indices, pointers), shape=(stop - start, self.n_minor))

    def cuts(self, first: int, piece_bytes: int) -> NDArray[np.int64]:
        """Return where to cut rows (or columns) so that pieces take about so many bytes."""
        wanted = max(1, piece_bytes // 32)
        edges = [first]
        while edges[-1] < self.indptr.size - 1:
            begin = self.indptr[edges[-1]]
            end = int(np.searchsorted(self.indptr, begin + wanted, side="right")) - 1
            edges.append(min(max(end, edges[-1] + 1), self.indptr.size - 1))
        return np.array(edges, dtype=np.int64)


class CompressedRows(RowSource):
    """A CSR array; positions are rows."""

    def __init__(self, held: Compressed, names: Names, y: NDArray[Any] | None) -> None:
        self._held, self.y = held, y
        self.about = About(names, True, held.data.dtype)

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        edges = self._held.cuts(position, piece_bytes).tolist()
        for start, stop in pairwise(edges):
            yield RowPiece(self._held.part(start, stop, by_columns=False), None, stop)


class CompressedColumns(ColumnSource):
    """A CSC array."""

    def __init__(self, held: Compressed, names: Names, y: NDArray[Any] | None) -> None:
        self._held, self.y = held, y
        self.shape = (held.n_minor, held.indptr.size - 1)
        self.about = About(names, True, held.data.dtype)

    def columns(self, start: int, stop: int) -> Any:
        return self._held.part(start, stop, by_columns=True)

    def widths(self, piece_bytes: int) -> NDArray[np.int64]:
        return self._held.cuts(0, piece_bytes)


def open_npy(path: Path, request: Request) -> RowSource | ColumnSource:
    """Return the source of an .npy file; the target is another .npy file."""
    array = FlatArray(path)
    y = None if request.target is None else target_from_file(request.target, path)
    return dense_source(array, None, None, y)


def dense_source(
    array: FlatArray,
    names: Names,
    scale: NDArray[Any] | None,
    y: NDArray[Any] | None,
) -> RowSource | ColumnSource:
    """Return the source of a dense array, by rows or columns as it is stored."""
    if len(array.shape) != 2 or 0 in array.shape:
        raise ValueError(f"{array.name} has shape {array.shape}; expected (n_samples, n_features)")
    return (ArrayColumns if array.fortran else ArrayRows)(array, names, scale, y)


def sparse_source(
    parts: tuple[Any, Any, NDArray[Any]],
    shape: tuple[int, int],
    form: str,
    names: Names,
    y: NDArray[Any] | None,
) -> RowSource | ColumnSource:
    """Return the source of data, indices and indptr, the first two read by ranges."""
    data, indices, indptr = parts
    n_minor, n_major = shape[::-1] if form == "csr" else shape
    where = "the sparse array"
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise ValueError(f"{where} is broken: indptr and indices must be whole numbers")
    if data.size not in (1, indices.size):
        raise ValueError(f"{where} is broken: {data.size} values and {indices.size} indices")
    sparse_size(where, shape, int(indices.size), max(shape))
    if indptr.shape != (n_major + 1,):
        raise ValueError(
            f"the sparse array is broken: indptr must have {n_major + 1} entries, got {indptr.size}"
        )
    held = Compressed(data, indices, indptr, n_minor)
    return (CompressedRows if form == "csr" else CompressedColumns)(held, names, y)


def open_npz(path: Path, request: Request) -> RowSource | ColumnSource:
    """Return the source of an .npz file: X, or data, indices, indptr, shape; y and names."""
    small = Archive(path)
    y = named_target(small, request.target, path)[1]
    if "X" in small:
        array = FlatArray(path, "X")
        if len(array.shape) != 2:
            raise ValueError(f"{array.name} has shape {array.shape}; expected two dimensions")
        found = names_of(small, array.shape[-1])
        return dense_source(array, found, scale_of(small, path), y)
    if not all(key in small for key in SPARSE_KEYS):
        raise no_matrix(sorted(small), path)
    size = small["shape"]
    if size.shape != (2,) or size.dtype.kind not in "iu" or small["indptr"].dtype.kind not in "iu":
        raise ValueError(
            f"{path} is a broken sparse matrix: shape and indptr must be whole numbers"
        )
    n_rows, n_columns = (int(number) for number in size)
    found = names_of(small, n_columns)
    parts = FlatArray(path, "data"), FlatArray(path, "indices"), small["indptr"]
    shape, form = (n_rows, n_columns), sparse_form(small, path)
    return sparse_source(parts, shape, form, found, y)
