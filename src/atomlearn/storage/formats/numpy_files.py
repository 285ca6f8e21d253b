"""NumPy's files, read without believing them: a header is held against the bytes that follow it."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.held import BELIEVED, fits, hold
from atomlearn.storage.formats.text_objects import read_text_objects
from atomlearn.storage.formats.understood import understood

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
#: The largest code point; those from the first surrogate to the last are no letters.
_LAST_LETTER, _SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)


#: Keys of numbers; others may hold names.
_NUMBERS = ("X", "data", "indices", "indptr", "shape", "scale")


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out NumPy's advice on headers that Python 2 wrote: they are read all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


class Header:
    """The header of an array, checked: ``shape``, ``fortran``, ``dtype``, ``begin`` of the data."""

    def __init__(self, stream: BinaryIO, stored: int, what: str) -> None:
        with understood(what, "NumPy array"), _quiet():
            version = np.lib.format.read_magic(stream)
            if version not in _HEADERS:
                raise ValueError(f"it is of version {version}; save it with numpy.save")
            # The length of the header is asked for as a whole: it may not be beyond the file.
            begin, n_bytes = stream.tell(), 2 if version == (1, 0) else 4
            length = int.from_bytes(stream.read(n_bytes), "little")
            hold(what, "its header", length, stored - begin)
            stream.seek(begin)
            self.shape, self.fortran, self.dtype = _HEADERS[version](stream)
        if self.dtype.hasobject:
            raise ValueError(
                f"{what} holds Python objects, which are not read: they could run anything; save "
                "numbers or text"
            )
        self.begin = stream.tell()
        # The product of Python's whole numbers: no size of a header overflows.
        n_bytes = math.prod(self.shape) * self.dtype.itemsize
        if any(size < 0 for size in self.shape) or max(self.shape, default=0) >= 2**62:
            raise ValueError(f"{what} has the shape {self.shape}; it is damaged, copy it afresh")
        hold(what, "its array", n_bytes, stored - self.begin)


def read_array(stream: BinaryIO, stored: int, what: str) -> NDArray[Any]:
    """Return the array that a stream of ``stored`` bytes holds; no objects, no broken text."""
    Header(stream, stored, what)
    with understood(what, "NumPy array"), _quiet():
        stream.seek(0)
        array: NDArray[Any] = np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
    if array.dtype.kind == "U" and array.size:
        letters = np.ascontiguousarray(array).reshape(-1)
        points = letters.astype(letters.dtype.newbyteorder("="), copy=False).view(np.uint32)
        lost = (points >= _SURROGATES[0]) & (points <= _SURROGATES[1])
        if (points > _LAST_LETTER).any() or lost.any():
            raise ValueError(f"{what} holds text that is no text; it is damaged, copy it afresh")
    return array


def load_npy(path: Path) -> NDArray[Any]:
    """Return the array of an .npy file."""
    with path.open("rb") as stream:
        return read_array(stream, path.stat().st_size, str(path))


class Archive:
    """An .npz file: which arrays it holds, each opened with its true size."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with understood(path, ".npz file"):
            self._zip = zipfile.ZipFile(path)
            entries = [item for item in self._zip.infolist() if item.filename.endswith(".npy")]
        self._entries = {item.filename[:-4]: item for item in entries}
        if len(self._entries) < len(entries):
            self.close()
            raise ValueError(f"{path} is damaged: it holds two arrays of the same name")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; streams of its arrays that are open go on."""
        self._zip.close()

    @property
    def keys(self) -> list[str]:
        """The names of the arrays."""
        return list(self._entries)

    def open(self, key: str) -> tuple[BinaryIO, int]:
        """Return the stream of an array, and how many bytes it has."""
        if key not in self._entries:
            raise ValueError(f"{self.path} holds no array {key!r}")
        entry = self._entries[key]
        what = f"{key} of {self.path}"
        stored = min(entry.compress_size, self.path.stat().st_size)
        hold(what, "it", entry.file_size, stored, BELIEVED.deflated)
        with understood(self.path, ".npz file"):
            return cast(BinaryIO, self._zip.open(entry)), entry.file_size

    def read(self, key: str, text: bool = False) -> NDArray[Any]:
        """Return an array; ``text``: also one of objects, where all of them are text."""
        if text:
            with self.open(key)[0] as stream, understood(self.path, ".npz file"):
                found = read_text_objects(stream, f"{key} of {self.path}")
            if found is not None:
                return found
        stream, stored = self.open(key)
        with stream, understood(self.path, ".npz file"):
            return read_array(stream, stored, f"{key} of {self.path}")


def load_npz(path: Path, leave: tuple[str, ...] = ()) -> tuple[dict[str, NDArray[Any]], set[str]]:
    """Return the arrays of an .npz file but those to ``leave``, and all keys.

    Pickled objects are refused, but names that are text.
    """
    with Archive(path) as archive:
        total = 0
        arrays = {}
        for key in archive.keys:
            if key not in leave:
                arrays[key] = archive.read(key, text=key not in _NUMBERS)
                total += arrays[key].nbytes
                fits(path, "all it holds", total)
        return arrays, set(archive.keys)
