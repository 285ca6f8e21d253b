"""NumPy's files; the sizes in a header are checked against the bytes of the file."""

from __future__ import annotations

import contextlib
import math
import warnings
import weakref
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.held import check_declared, understood
from atomlearn.storage.formats.messages import require_name
from atomlearn.storage.formats.table import DataTable, Request, Schema, tidy_target

#: Arrays by their keys in an .npz file.
Arrays = Mapping[str, NDArray[Any]]

#: Keys of a sparse matrix, as scipy.sparse.save_npz writes them.
SPARSE_KEYS = ("data", "indices", "indptr", "shape")


def read_npy(path: Path, request: Request) -> DataTable:
    """Return the table of an .npy file, with one row for each sample.

    The target of the ``request`` is ``last``, the number of a column (counting from 0), or another
    .npy file. Without a target, all columns are features.
    """
    X = load_npy(path)
    y = None
    target = request.target
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"{path} has shape {X.shape}; expected (n_samples, n_columns), none empty")
    column = _npy_column(target, X.shape[1])
    if column is not None:
        y = tidy_target(X[:, column], f"column {column} of {path}")
        X = np.delete(X, column, axis=1)
    elif target is not None:
        y = target_from_file(target, path)
    return DataTable(X, y, Schema(X.shape[1]), target, str(path))


def sparse_form(arrays: Arrays, path: Path) -> str:
    """Return the layout of a sparse matrix, "csr" or "csc", from the ``arrays`` of an .npz file.

    ``scipy.sparse.save_npz`` writes it under the key "format". Other layouts are refused. ``path``
    is for messages.
    """
    with understood(path, "sparse matrix"):
        form = str(arrays.get("format", np.array("csr")).astype(np.str_).item())
    if form not in ("csr", "csc"):
        raise ValueError(f"{path} is a sparse matrix in {form!r} format; save it as csr or csc")
    return form


def stored_names(arrays: Arrays, n_features: int) -> tuple[str, ...] | None:
    """Return the names of the columns of X from the ``arrays`` of a file, or None.

    They are the first array under a usual key, such as "feature_names", that has one text for each
    of ``n_features`` columns.
    """
    for key in ("feature_names", "features", "names", "genes", "words", "columns"):
        names = arrays.get(key)
        if names is not None and names.shape == (n_features,) and names.dtype.kind in "US":
            return tuple(name.strip() for name in names.astype(np.str_).tolist())
    return None


def stored_target(arrays: Arrays, request: Request, path: Path) -> NDArray[Any] | None:
    """Return the target (n_samples,) in the arrays of an .npz file, or None if it has none.

    Its key is the target of the ``request`` (default: ``y``), which may also be another .npy file.
    If there is an array ``classes``, the integers of ``y`` are replaced by its entries. ``path`` is
    for messages.
    """
    name = request.target
    missing = request.missing
    if name is None:
        if "y" not in arrays:
            return None
        name = "y"
    if name not in arrays and Path(name).suffix == ".npy":
        return target_from_file(name, path)
    require_name(name, list(arrays), f"{path} has no key for the target")
    y = tidy_target(arrays[name], f"{name!r} of {path}", missing)
    # Names of classes apply only to y under its default key, and only if y is whole numbers.
    classes = arrays.get("classes") if name == "y" else None
    if classes is None or y.dtype != np.int64:
        return y
    if y.min() < 0 or y.max() >= classes.size:
        raise ValueError(
            f"y of {path} must index its {classes.size} classes; found {y.min()} to {y.max()}"
        )
    return tidy_target(classes[y], f"'classes' of {path}")


def target_from_file(name: str, path: Path) -> NDArray[Any]:
    """Return the target in the .npy file ``name``, in the current folder or next to ``path``."""
    for candidate in (Path(name), path.parent / name):
        if candidate.suffix == ".npy" and candidate.is_file():
            return tidy_target(load_npy(candidate), f"the target {candidate}")
    raise ValueError(
        f"{path} has no target {name!r}: expected 'last', the number of a column (counting from "
        "0), or an .npy file of targets (looked for here and beside the data)"
    )


def _npy_column(target: str | None, n_columns: int) -> int | None:
    """Return the number, below ``n_columns``, of the column that ``target`` names, or None.

    ``target`` is "last" or a number, counted from 0; the result is None for other texts.
    """
    if target == "last":
        return n_columns - 1
    if target is None or not target.isdecimal():
        return None
    if int(target) >= n_columns:
        raise ValueError(f"target {target} is not a column: there are {n_columns}, from 0")
    return int(target)


@contextlib.contextmanager
def _array(description: str) -> Iterator[None]:
    """Turn NumPy's errors about an unreadable array, in this ``with``, into a ValueError.

    Its message is one line. ``description`` says which array it is.
    """
    remedy = "; save numbers, or text (dtype U or S), by numpy.save"
    with (
        understood(description, "NumPy array", remedy),
        warnings.catch_warnings(action="ignore", category=UserWarning),
    ):
        # NumPy warns of headers written by Python 2, which it reads correctly.
        yield


def read_array(stream: BinaryIO, what: str) -> NDArray[Any]:
    """Return the array in a binary stream; refuse arrays of objects and broken text.

    ``what`` says which array it is, for messages.
    """
    with _array(what):
        array: NDArray[Any] = np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
        if array.dtype.kind == "U":
            np.char.encode(array, "utf-8")  # raises for numbers that are no letters
        return array


def load_npy(path: Path) -> NDArray[Any]:
    """Return the array of an .npy file."""
    with path.open("rb") as stream:
        return read_array(stream, str(path))


class Archive(Mapping[str, NDArray[Any]]):
    """The .npz file ``path`` as a mapping from key to array; an array is read at its first access.

    Two arrays of the same name are refused. ``_entries`` are the directory entries by key, and
    ``_loaded`` the arrays that were read.
    """

    def __init__(self, path: Path) -> None:
        """Open the .npz file ``path`` and list its arrays; none is read yet."""
        self.path = path
        self._loaded: dict[str, NDArray[Any]] = {}
        with understood(path, ".npz file"):
            self._file = zipfile.ZipFile(path)
        entries = [item for item in self._file.infolist() if item.filename.endswith(".npy")]
        self._entries = {item.filename[:-4]: item for item in entries}
        if len(self._entries) < len(entries):
            raise ValueError(f"{path} is damaged: it holds two arrays of the same name")

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the keys; no array is read."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self._entries)

    def __getitem__(self, key: str) -> NDArray[Any]:
        """Return the array ``key``, which is read now if it was not read before."""
        if key not in self._loaded:
            stream, _ = self.open(key)
            with stream:
                self._loaded[key] = read_array(stream, f"{key} of {self.path}")
        return self._loaded[key]

    def open(self, key: str) -> tuple[BinaryIO, int]:
        """Return a stream of the array ``key``, header included, and its number of bytes."""
        entry = self._entries[key]
        with understood(self.path, ".npz file"):
            return cast(BinaryIO, self._file.open(entry)), entry.file_size


class FlatArray:
    """An array of an .npy or .npz file, read by ranges of its entries in stored order.

    ``_stream`` is the open file, in which the entries start at byte ``_begin``.

    Parameters
    ----------
    path : Path
        The file.
    member : str, optional
        Key of the array in an .npz file; None for an .npy file.

    Attributes
    ----------
    shape, dtype, size
        As those of an array of NumPy.
    fortran : bool
        Whether entries are stored column after column.
    """

    def __init__(self, path: Path, member: str | None = None) -> None:
        """Open an array and read its header: the .npy file ``path``, or ``member`` of an .npz file.

        A size in the header that the file cannot hold is refused.
        """
        self.path = path
        self.name = str(path) if member is None else f"{member} of {path}"
        self._stream: Any
        if member is None:
            self._stream, stored = path.open("rb"), path.stat().st_size
        else:
            self._stream, stored = Archive(path).open(member)
        weakref.finalize(self, self._stream.close)
        # Only the header is read here: shape, order and type.
        with _array(self.name):
            version = np.lib.format.read_magic(self._stream)
            if version == (1, 0):
                header = np.lib.format.read_array_header_1_0(self._stream)
            else:
                header = np.lib.format.read_array_header_2_0(self._stream)
        self.shape, self.fortran, self.dtype = header
        if self.dtype.kind not in "biuf":
            raise ValueError(f"{self.name} holds {self.dtype}; expected real numbers")
        self._begin = self._stream.tell()
        # A product of Python integers, so that no size in a header overflows.
        self.size = math.prod(self.shape)
        check_declared(
            self.name, "its array", self.size * self.dtype.itemsize, stored - self._begin
        )

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the entries start, ..., stop - 1, counted in stored order."""
        with understood(self.path, "NumPy file"):
            self._stream.seek(self._begin + start * self.dtype.itemsize)
            content = np.empty(stop - start, self.dtype)
            n_read = self._stream.readinto(content.view(np.uint8))
        if n_read != content.nbytes:
            raise ValueError(
                f"{self.name} ends too early: {self.size:,} entries were announced; the file is "
                "cut off, copy it afresh"
            )
        return content
