"""NumPy's files, read without believing them: a header is held against the bytes that follow it."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.held import BELIEVED, believe, fits, hold
from atomlearn.storage.formats.understood import understood

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
#: The largest code point; those from the first surrogate to the last are no letters.
_LAST_LETTER, _SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out NumPy's advice on headers that Python 2 wrote: they are read all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


class Header:
    """The header of an array, checked; ``begin`` and ``n_bytes`` of the data."""

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
                f"{what} holds Python objects, which are never read; save names as text (dtype U "
                "or S), or in a text file beside the numbers"
            )
        self.begin = stream.tell()
        # The product of Python's whole numbers: no size of a header overflows.
        n_bytes = math.prod(self.shape) * self.dtype.itemsize
        if any(size < 0 for size in self.shape) or max(self.shape, default=0) >= 2**62:
            raise ValueError(f"{what} has the shape {self.shape}; it is damaged, copy it afresh")
        believe(what, "its array", n_bytes, stored - self.begin)
        self.n_bytes = n_bytes


def read_array(stream: BinaryIO, stored: int, what: str) -> NDArray[Any]:
    """Return the array that a stream of ``stored`` bytes holds; no objects, no broken text."""
    fits(what, "its array", Header(stream, stored, what).n_bytes)
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


class Archive(Mapping[str, NDArray[Any]]):
    """An .npz file. An array is read when it is asked for; what nobody asks for is never read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: dict[str, NDArray[Any]] = {}
        with understood(path, ".npz file"), zipfile.ZipFile(path) as file:
            entries = [item for item in file.infolist() if item.filename.endswith(".npy")]
        self._entries = {item.filename[:-4]: item for item in entries}
        if len(self._entries) < len(entries):
            raise ValueError(f"{path} is damaged: it holds two arrays of the same name")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __getitem__(self, key: str) -> NDArray[Any]:
        if key not in self._held:
            stream, stored = self.open(key)
            with stream:
                self._held[key] = read_array(stream, stored, f"{key} of {self.path}")
        return self._held[key]

    def open(self, key: str) -> tuple[BinaryIO, int]:
        """Return the stream of an array, and how many bytes it has."""
        if key not in self._entries:
            raise KeyError(key)
        entry = self._entries[key]
        what = f"{key} of {self.path}"
        stored = min(entry.compress_size, self.path.stat().st_size)
        believe(what, "it", entry.file_size, stored, BELIEVED.deflated)
        with understood(self.path, ".npz file"), zipfile.ZipFile(self.path) as file:
            return cast(BinaryIO, file.open(entry)), entry.file_size
