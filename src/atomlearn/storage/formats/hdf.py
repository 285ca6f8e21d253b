"""HDF5 files, through h5py, as trees of arrays."""

from __future__ import annotations

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.held import understood
from atomlearn.storage.formats.tree import Node

#: First bytes of an HDF5 file, and of each of its global heaps, which store texts.
SIGNATURE = b"\x89HDF\r\n\x1a\n"
HEAP = b"GCOL"


def check_heaps(path: Path) -> None:
    """Raise ValueError if a global heap (text storage) of the file is corrupt.

    The HDF5 library never returns from a heap that has a free object of size zero. This function
    finds every heap by its first bytes and walks through its objects, in the bytes of the file.
    """
    if not path.stat().st_size:
        return
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        # The superblock (head of the file) has the number of bytes in which sizes are written: at
        # byte 6 after the signature in its versions 0 and 1, at byte 2 in later ones.
        position = max(data.find(SIGNATURE), 0) + len(SIGNATURE)
        version = data[position : position + 8]
        width = version[6 if version[:1] in (b"\0", b"\1") else 2] if len(version) == 8 else 8
        heap = data.find(HEAP)
        # A heap and an object both begin with 8 bytes and their size. Object 0 is free space, whose
        # size includes its head.
        head = 8 + width
        while heap >= 0:
            end = heap + int.from_bytes(data[heap + 8 : heap + head], "little")
            position = heap + _aligned(head)
            while position + head <= min(end, len(data)):
                is_free = data[position : position + 2] == b"\0\0"
                size = int.from_bytes(data[position + 8 : position + head], "little")
                if is_free and not size:
                    raise ValueError(f"{path} is damaged: a heap of its texts has an empty object")
                position += size if is_free else _aligned(head) + _aligned(size)
            heap = data.find(HEAP, heap + 1)


def _aligned(size: int) -> int:
    """Return the size rounded up to a multiple of 8 bytes."""
    return -(-size // 8) * 8


_KIND = "HDF5 file"


def open_hdf(path: Path) -> HdfNode:
    """Return the root of an HDF5 file after a check of its heaps."""
    h5py = imported("h5py", "h5ad", path)
    check_heaps(path)
    with understood(path, _KIND):
        return HdfNode(path, h5py.File(path, "r"))


class HdfNode(Node):
    """A group or dataset of an HDF5 file.

    Parameters
    ----------
    path : Path
        The file.
    item : h5py.Group or h5py.Dataset
        The object of the h5py package.
    """

    def __init__(self, path: Path, item: Any) -> None:
        """Read name, shape and type of ``item``, an object of h5py in the file ``path``."""
        h5py = imported("h5py", "h5ad", path)
        self.path = path
        self._item = item
        with understood(path, _KIND):
            self.name = str(item.name)
            self.is_group = isinstance(item, h5py.Group)
            if not self.is_group:
                # An empty dataset has no shape.
                self.shape = item.shape or ()
                self.dtype = item.dtype

    def close(self) -> None:
        """Close the file; only for the node that ``open_hdf`` returned."""
        self._item.close()

    def names(self) -> list[str]:
        """Return the names of the members of a group."""
        with understood(self.path, _KIND):
            return [str(name) for name in self._item]

    def member(self, name: str) -> HdfNode:
        """Return the member of a group with this name; refuse links and data of other files.

        Otherwise a malicious file could name any file of this machine, and have its content read.
        """
        h5py = imported("h5py", "h5ad", self.path)
        group = self._item
        with understood(self.path, _KIND):
            # HDF5 would follow links in a path of several names.
            if not self.is_group or "/" in name or not group.id.links.exists(name.encode()):
                raise KeyError(f"there is no {name!r} in {self.name}")
            if group.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
                raise ValueError(f"{name!r} in {self.name} is a link, and none is followed")
            item = group[name]
            if isinstance(item, h5py.Dataset):
                properties = item.id.get_create_plist()
                if properties.get_layout() == h5py.h5d.VIRTUAL or properties.get_external_count():
                    raise ValueError(f"{item.name} lies in other files, and none is followed")
        return HdfNode(self.path, item)

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the attribute ``name`` (metadata) of the node, or ``default`` if it has none."""
        with understood(self.path, _KIND):
            return self._item.attrs.get(name, default)

    def content(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return the rows start, ..., stop - 1 of a dataset as an array (default: all rows)."""
        h5py = imported("h5py", "h5ad", self.path)
        item = self._item
        with understood(self.path, _KIND):
            # The types of the fields of records, or the one type of other arrays.
            kinds = [self.dtype[field] for field in self.fields] or [self.dtype]
            is_text = h5py.check_string_dtype(self.dtype) is not None
            for kind in kinds:
                if kind.kind not in "biufS" and h5py.check_string_dtype(kind) is None:
                    raise ValueError(f"{self.name!r} holds {kind}; expected numbers or text")
            if item.shape is None:
                raise ValueError(f"{self.name!r} is empty; expected numbers or text")
            stored = item.id.get_storage_size()
            chunk = math.prod(item.chunks or (0,))
        # Only chunked datasets may be compressed. Without stored bytes all entries are equal.
        self.check_size(stored, chunk, bool(chunk or not stored))
        with understood(self.path, _KIND):
            rows = item.asstr() if is_text else item
            return np.asarray(rows[start:stop] if item.shape else rows[()])
