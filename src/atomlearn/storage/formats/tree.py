"""Trees of arrays in a file or folder (HDF5, Zarr): groups, and arrays that are read in ranges."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.held import LIMITS, check_declared


class Node(ABC):
    """A group or an array of a tree.

    Subclasses follow no link to another file, and ``content`` compares the declared size with the
    stored size first, so that a small corrupt file cannot allocate a huge array.

    Attributes
    ----------
    path : Path
        The file or folder.
    name : str
        Name inside the file, for messages.
    is_group : bool
        Whether it is a group, which has members, or an array.
    shape : tuple of int
        Shape of an array; () for a group.
    dtype : dtype
        Type of the entries of an array; object for text of varying length.
    """

    path: Path
    name: str
    is_group: bool
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] = np.dtype(object)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of an array of records, else ()."""
        return self.dtype.names or ()

    @property
    def size(self) -> int:
        """The number of entries of an array."""
        return math.prod(self.shape)

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the members of a group."""

    @abstractmethod
    def member(self, name: str) -> Node:
        """Return the member of a group with this name; refuse links and arrays of other files."""

    @abstractmethod
    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the attribute ``name`` (metadata of the node), or ``default`` if it is absent."""

    @abstractmethod
    def content(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return rows start, ..., stop - 1 of an array (default: all): numbers, text or records."""

    def has(self, name: str) -> bool:
        """Return whether it is a group with a member of this name."""
        return self.is_group and name in self.names()

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the entries start, ..., stop - 1 of a vector."""
        return self.content(start, stop)

    def texts(self) -> list[str]:
        """Return the entries of an array as text."""
        return [text_of(entry) for entry in self.content().tolist()]

    def check_size(self, stored: int, chunk: int, is_packed: bool) -> None:
        """Raise ValueError if the array declares more than its stored bytes can hold.

        Parameters
        ----------
        stored : int
            Bytes that the file has for the array.
        chunk : int
            Number of entries of one chunk, which a library decompresses as a whole.
        is_packed : bool
            Whether the entries may be compressed.
        """
        declared = max(self.size, chunk) * self.dtype.itemsize
        ratio = LIMITS.unpacked if is_packed else 1
        check_declared(self.path, repr(self.name), declared, stored, ratio)


def text_of(entry: Any) -> str:
    """Return an entry of a tree as text; bytes are UTF-8."""
    return entry.decode("utf-8", "replace") if isinstance(entry, bytes) else str(entry)


def numeric_vector(node: Node) -> Node:
    """Return the node if it is a vector of numbers, else raise ValueError."""
    if len(node.shape) != 1 or node.dtype.kind not in "biuf":
        raise ValueError(f"{node.name} of {node.path} must be a vector of numbers")
    return node
