"""Zarr folders and archives, through zarr, as trees of arrays."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.held import understood
from atomlearn.storage.formats.tree import Node

_KIND = "Zarr store"
#: File that describes a group, by version 2 and by version 3 of Zarr.
_GROUP_FILES = (".zgroup", "zarr.json")


def is_zarr(path: Path) -> bool:
    """Return whether a path is a Zarr group: a folder, or a zip archive of one."""
    if path.is_dir():
        return any((path / name).is_file() for name in _GROUP_FILES)
    return path.name.lower().endswith(".zarr.zip")


def open_zarr(path: Path) -> ZarrNode:
    """Return the root of the Zarr folder or archive ``path``."""
    zarr = imported("zarr", "zarr", path)
    with understood(path, _KIND):
        if path.is_dir():
            store: Any = str(path)
        else:
            store = zarr.storage.ZipStore(str(path), mode="r")
        # The consolidated metadata has the types of all arrays. One unknown type would make the
        # whole store unreadable, even if its array is never read.
        return ZarrNode(path, zarr.open_group(store, mode="r", use_consolidated=False))


class ZarrNode(Node):
    """A group or array of a Zarr store.

    Parameters
    ----------
    path : Path
        Folder or archive of the store.
    item : zarr.Group or zarr.Array
        The object of the zarr package.
    """

    def __init__(self, path: Path, item: Any) -> None:
        """Read name, shape and type of ``item``, an object of zarr in the store ``path``."""
        zarr = imported("zarr", "zarr", path)
        self.path = path
        self._item = item
        with understood(path, _KIND):
            self.name = f"/{item.path}"
            self.is_group = isinstance(item, zarr.Group)
            if not self.is_group:
                self.shape = item.shape
                dtype = item.dtype
                # Text of varying length has a type of its own, without a fixed size.
                self.dtype = dtype if dtype.kind in "biufSUV" else np.dtype(object)

    def names(self) -> list[str]:
        """Return the names of the members of a group, sorted."""
        with understood(self.path, _KIND):
            return sorted(self._item.keys())

    def member(self, name: str) -> ZarrNode:
        """Return the member of a group with this name; refuse a path of several names."""
        with understood(self.path, _KIND):
            if not self.is_group or "/" in name or name not in self._item:
                raise KeyError(f"there is no {name!r} in {self.name}")
            item = self._item[name]
        return ZarrNode(self.path, item)

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the attribute ``name`` (metadata) of the node, or ``default`` if it has none."""
        with understood(self.path, _KIND):
            return self._item.attrs.get(name, default)

    def content(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return the rows start, ..., stop - 1 of an array (default: all); refuse pickled ones."""
        item = self._item
        # The size in the metadata is compared with the stored bytes before any memory is taken.
        with understood(self.path, _KIND):
            described = repr(item.metadata).casefold()
            # Unpickling would run the code that a file contains.
            if "pickle" in described:
                raise ValueError(f"{self.name!r} is pickled; expected numbers or text")
            stored = item.nbytes_stored()
            chunk = math.prod(item.chunks)
        self.check_size(stored, chunk, True)
        with understood(self.path, _KIND):
            return np.asarray(item[start:stop] if item.shape else item[()])
