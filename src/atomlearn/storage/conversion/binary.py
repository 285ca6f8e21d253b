"""Arrays in files: .npy and .npz, Parquet, PLINK, AnnData."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.conversion.sources import About, ColumnSource, RowPiece, RowSource
from atomlearn.storage.formats.arrays import names_of, target_of
from atomlearn.storage.formats.table import near_names
from atomlearn.storage.store.plink import PlinkBed
from atomlearn.storage.store.store_file import CHUNK_BYTES
from atomlearn.storage.store.stored_columns import cut

_SPARSE = ("data", "indices", "indptr", "shape")


class FlatArray:
    """An array of an .npy file, or of one in an .npz, read by ranges of its entries in order."""

    def __init__(self, path: Path, member: str | None = None) -> None:
        self.path, self.member = path, member
        try:
            if member is None:
                self._stream: BinaryIO = path.open("rb")
            else:
                archive = zipfile.ZipFile(path)
                self._stream = cast(BinaryIO, archive.open(member + ".npy"))
            version = np.lib.format.read_magic(self._stream)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            self.shape, self.fortran, self.dtype = read(self._stream)
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is not a readable NumPy file: {error}") from error
        if self.dtype.kind not in "biuf":
            raise ValueError(f"{self._name} holds {self.dtype}; expected real numbers")
        self._begin = self._stream.tell()
        self.size = int(np.prod(self.shape, dtype=np.int64))

    def __del__(self) -> None:
        for held in (getattr(self, "_stream", None), getattr(self, "_archive", None)):
            if held is not None:
                held.close()

    @property
    def _name(self) -> str:
        return str(self.path) if self.member is None else f"{self.member} of {self.path}"

    def read(self, start: int, count: int) -> NDArray[Any]:
        """Return entries in the order in which they are stored."""
        self._stream.seek(self._begin + start * self.dtype.itemsize)
        try:
            content = self._stream.read(count * self.dtype.itemsize)
        except zipfile.BadZipFile as error:
            raise ValueError(f"{self.path} is damaged: {error}") from error
        if len(content) != count * self.dtype.itemsize:
            raise ValueError(
                f"{self._name} ends too early: {self.size:,} entries were announced; the file is "
                "cut off, copy it afresh"
            )
        return np.frombuffer(content, dtype=self.dtype)


class ArrayRows(RowSource):
    """A dense array stored by rows; positions are rows."""

    def __init__(
        self, array: FlatArray, names: list[str] | None, scale: Any, y: NDArray[Any] | None
    ) -> None:
        self.array, self._scale, self._y = array, scale, y
        self.about = About(names, False, array.dtype if scale is None else np.dtype(np.float64))

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        n_rows, n_columns = self.array.shape
        step = max(1, piece_bytes // (8 * n_columns))
        for row in range(position, n_rows, step):
            count = min(step, n_rows - row)
            X = self.array.read(row * n_columns, count * n_columns).reshape(count, n_columns)
            yield RowPiece(X if self._scale is None else X / self._scale, None, row + count)

    def target(self) -> NDArray[Any] | None:
        return self._y


class ArrayColumns(ColumnSource):
    """A dense array stored by columns."""

    def __init__(
        self, array: FlatArray, names: list[str] | None, scale: Any, y: NDArray[Any] | None
    ) -> None:
        self.array, self._scale, self._y = array, scale, y
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

    def target(self) -> NDArray[Any] | None:
        return self._y


class Compressed:
    """data, indices and indptr by ranges, whatever holds them; one datum stands for all."""

    def __init__(self, data: Any, indices: Any, indptr: NDArray[Any], n_minor: int) -> None:
        self.data, self.indices = data, indices
        self.indptr = np.asarray(indptr).astype(np.int64)
        self.n_minor = n_minor
        steps = np.diff(self.indptr)
        stored = int(indices.size)
        if self.indptr[0] != 0 or (steps < 0).any() or int(self.indptr[-1]) > stored:
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

    def __init__(self, held: Compressed, names: list[str] | None, y: NDArray[Any] | None) -> None:
        self._held, self._y = held, y
        self.about = About(names, True, held.data.dtype)

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        edges = self._held.cuts(position, piece_bytes).tolist()
        for start, stop in pairwise(edges):
            yield RowPiece(self._held.part(start, stop, by_columns=False), None, stop)

    def target(self) -> NDArray[Any] | None:
        return self._y


class CompressedColumns(ColumnSource):
    """A CSC array."""

    def __init__(self, held: Compressed, names: list[str] | None, y: NDArray[Any] | None) -> None:
        self._held, self._y = held, y
        self.shape = (held.n_minor, held.indptr.size - 1)
        self.about = About(names, True, held.data.dtype)

    def columns(self, start: int, stop: int) -> Any:
        return self._held.part(start, stop, by_columns=True)

    def widths(self, piece_bytes: int) -> NDArray[np.int64]:
        return self._held.cuts(0, piece_bytes)

    def target(self) -> NDArray[Any] | None:
        return self._y


def open_npy(path: Path, target: str | None) -> RowSource | ColumnSource:
    """Return the source of an .npy file; the target is another .npy file."""
    array = FlatArray(path)
    _two_dimensional(array, str(path))
    y = None
    if target is not None:
        y = target_of({}, target, path)
    return (ArrayColumns if array.fortran else ArrayRows)(array, None, None, y)


def _two_dimensional(array: FlatArray, name: str) -> None:
    if len(array.shape) != 2 or 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}; expected (n_samples, n_features)")


def open_npz(path: Path, target: str | None) -> RowSource | ColumnSource:
    """Return the source of an .npz file: X, or data, indices, indptr, shape; y and names."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            large = {"X", "data", "indices"}
            small = {key: archive[key] for key in archive.files if key not in large}
            keys = set(archive.files)
    except (ValueError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        raise ValueError(f"{path} is not a readable .npz file: {error}") from error
    name = "y" if target is None and "y" in small else target
    y = None if name is None else target_of(small, name, path)
    if "X" in keys:
        array = FlatArray(path, "X")
        _two_dimensional(array, f"X of {path}")
        names = names_of(small, array.shape[1])
        scale = small.get("scale")
        if scale is not None and not np.all((scale != 0) & np.isfinite(scale)):
            raise ValueError(f"scale of {path} must be finite and not zero: X is divided by it")
        scale = None if scale is None or np.all(scale == 1) else scale
        kind = ArrayColumns if array.fortran else ArrayRows
        return kind(array, None if names is None else list(names), scale, y)
    if not keys >= set(_SPARSE):
        raise ValueError(
            f"{path} holds {', '.join(sorted(keys)) or 'nothing'}; expected X (dense) or "
            f"{', '.join(_SPARSE)} (sparse)"
        )
    form = small.get("format", np.array("csr")).item()
    form = form.decode() if isinstance(form, bytes) else str(form)
    n_rows, n_columns = (int(size) for size in small["shape"])
    found = names_of(small, n_columns)
    names_list = None if found is None else list(found)
    if form not in ("csr", "csc"):
        raise ValueError(f"{path} is a sparse matrix in {form!r} format; save it as csr or csc")
    n_minor, n_major = (n_columns, n_rows) if form == "csr" else (n_rows, n_columns)
    if small["indptr"].shape != (n_major + 1,):
        raise ValueError(
            f"{path} is a broken sparse matrix: indptr must have {n_major + 1} entries"
        )
    held = Compressed(FlatArray(path, "data"), FlatArray(path, "indices"), small["indptr"], n_minor)
    return (CompressedRows if form == "csr" else CompressedColumns)(held, names_list, y)


class ParquetColumns(ColumnSource):
    """Columns of numbers of a Parquet file."""

    def __init__(self, path: Path, target: str | None, exclude: Sequence[str]) -> None:
        pq = imported("pyarrow.parquet", "pyarrow", path)
        try:
            self._file = pq.ParquetFile(path)
        except Exception as error:  # pyarrow's own exceptions have no common base
            raise ValueError(f"{path} is not a readable Parquet file: {error}") from error
        schema, self.path, self._target = self._file.schema_arrow, path, target
        for name in (*exclude, *([] if target is None else [target])):
            if name not in schema.names:
                raise ValueError(f"{path} has no column {name!r}{near_names(name, schema.names)}")
        pa = imported("pyarrow", "pyarrow", path)
        names, types = [], []
        for field in schema:
            if field.name in (target, *exclude):
                continue
            kind = field.type
            numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            if not numeric and not pa.types.is_boolean(kind):
                raise ValueError(
                    f"column {field.name!r} of {path} is {kind}; leave it out (--exclude), or turn "
                    "it into numbers"
                )
            names.append(field.name)
            types.append(np.dtype(kind.to_pandas_dtype()))
        if not names:
            raise ValueError(f"{path} has no column left for X besides the target")
        self.shape = (self._file.metadata.num_rows, len(names))
        widest = np.result_type(*types)
        self.about = About(names, False, widest if widest.kind != "b" else np.dtype(np.int8))

    def _column(self, table: Any, name: str) -> NDArray[Any]:
        column = table.column(name)
        if column.null_count:
            # Integers with nulls come as floats with NaN, which the type of the store decides on.
            return np.asarray(column.cast("float64").to_numpy())
        return np.asarray(column.to_numpy())

    def columns(self, start: int, stop: int) -> NDArray[Any]:
        assert self.about.names is not None
        wanted = self.about.names[start:stop]
        table = self._file.read(columns=wanted)
        columns = [self._column(table, name) for name in wanted]
        X = np.empty((self.shape[0], len(wanted)), np.result_type(*columns), order="F")
        for place, column in enumerate(columns):
            X[:, place] = column
        return X

    def target(self) -> NDArray[Any] | None:
        if self._target is None:
            return None
        column = self._file.read(columns=[self._target]).column(self._target)
        values = column.to_numpy()
        return values.astype(np.str_) if values.dtype.kind == "O" else np.asarray(values)


class BedColumns(ColumnSource):
    """The genotypes of a PLINK .bed, packed as they are."""

    def __init__(self, path: Path) -> None:
        self._design = PlinkBed(path)
        self.shape = self._design.shape
        self.about = About(self._design.feature_names, False, np.dtype(np.uint8))
        self._column = (self.shape[0] + 3) // 4

    def columns(self, start: int, stop: int) -> NDArray[np.uint8]:
        return self._design.packed(start, stop)

    def widths(self, piece_bytes: int) -> NDArray[np.int64]:
        return cut(self.shape[1], self._column, max(piece_bytes, CHUNK_BYTES))

    def target(self) -> NDArray[Any] | None:
        return self._design.target


def imported(module: str, extra: str, path: Path) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            f"reading {path} needs {module.partition('.')[0]}: pip install 'atomlearn[{extra}]'"
        ) from error
