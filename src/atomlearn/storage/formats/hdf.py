"""HDF5 files, through h5py: the rows or columns of AnnData, read in pieces."""

from __future__ import annotations

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.flat import DenseLines, RowsOfFile, Stored, sparse_source
from atomlearn.storage.formats.held import LIMITS, believe, understood
from atomlearn.storage.formats.messages import require_name
from atomlearn.storage.formats.numpy_files import target_from_file
from atomlearn.storage.formats.table import Observations, Request

SIGNATURE = b"\x89HDF\r\n\x1a\n"
HEAP = b"GCOL"


def check_heaps(path: Path) -> None:
    """Raise ValueError if a global heap (text storage) of the file is corrupt.

    The HDF5 library never returns from a heap that has a free object of size zero.
    """
    if not path.stat().st_size:
        return
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as held:
        # The superblock has the number of bytes of a size; its position depends on the version.
        at = max(held.find(SIGNATURE), 0) + len(SIGNATURE)
        known = held[at : at + 8]
        width = known[6 if known[:1] in (b"\0", b"\1") else 2] if len(known) == 8 else 8
        place = held.find(HEAP)
        head = 8 + width
        while place >= 0:
            end = place + int.from_bytes(held[place + 8 : place + head], "little")
            at = place + _aligned(head)
            while at + head <= min(end, len(held)):
                is_free = held[at : at + 2] == b"\0\0"
                size = int.from_bytes(held[at + 8 : at + head], "little")
                if is_free and not size:
                    raise ValueError(f"{path} is damaged: a heap of its texts has an empty object")
                at += size if is_free else _aligned(head) + _aligned(size)
            place = held.find(HEAP, place + 1)


def _aligned(size: int) -> int:
    """Return the size rounded up to a multiple of 8 bytes."""
    return -(-size // 8) * 8


_KIND = "HDF5 file"


def opened(path: Path) -> Any:
    """Open an HDF5 file after a check of its heaps."""
    h5py = imported("h5py", "h5ad", path)
    check_heaps(path)
    with understood(path, _KIND):
        return h5py.File(path, "r")


def member_of(group: Any, name: str, path: Path) -> Any:
    """Return the group or dataset of this name; refuse links, and data stored in other files.

    Otherwise a malicious file could name any file of this machine, and have its content read.
    """
    h5py = imported("h5py", "h5ad", path)
    with understood(path, _KIND):
        # HDF5 would resolve a path of several parts, and follow links on the way.
        if "/" in name or not group.id.links.exists(name.encode()):
            raise KeyError(f"there is no {name!r} in {group.name}")
        if group.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{name!r} in {group.name} is a link, and none is followed")
        found = group[name]
        if isinstance(found, h5py.Dataset):
            made = found.id.get_create_plist()
            if made.get_layout() == h5py.h5d.VIRTUAL or made.get_external_count():
                raise ValueError(f"{found.name} lies in other files, and none is followed")
        return found


def attribute(group: Any, name: str, path: Path, other: Any = None) -> Any:
    """Return an attribute, or ``other`` if it is absent."""
    with understood(path, _KIND):
        return group.attrs.get(name, other)


def content(dataset: Any, path: Path, start: int = 0, stop: int | None = None) -> NDArray[Any]:
    """Return rows ``start`` to ``stop`` of a dataset; all reads of HDF5 data use this function.

    The declared size is compared with the stored size first, so that a small corrupt file cannot
    allocate a huge array.
    """
    h5py = imported("h5py", "h5ad", path)
    with understood(path, _KIND):
        shape = dataset.shape
        dtype = dataset.dtype
        what = repr(dataset.name)
        stored = dataset.id.get_storage_size()
        chunk = math.prod(dataset.chunks or (0,))
        is_text = h5py.check_string_dtype(dtype) is not None
        if shape is None or (dtype.kind not in "biufS" and not is_text):
            raise ValueError(f"{what} holds {dtype}; expected numbers or text")
    # Compact and contiguous datasets are stored uncompressed; filters may shrink the others.
    ratio = 1 if not chunk and stored else LIMITS.unpacked
    believe(path, what, max(math.prod(shape), chunk) * dtype.itemsize, stored, ratio)
    with understood(path, _KIND):
        rows = dataset.asstr() if is_text else dataset
        return np.asarray(rows[start:stop] if shape else rows[()])


class _Vector:
    """A one-dimensional dataset of numbers in an HDF5 file, of which ranges are read."""

    def __init__(self, dataset: Any, path: Path) -> None:
        self._dataset = dataset
        self._path = path
        self.dtype, self.size = dataset.dtype, int(dataset.size)
        if dataset.ndim != 1 or self.dtype.kind not in "biuf":
            raise ValueError(f"{dataset.name} of {path} must be a vector of numbers")

    def read(self, start: int, stop: int) -> NDArray[Any]:
        return content(self._dataset, self._path, start, stop)


def open_h5ad(path: Path, request: Request) -> Stored:
    """Return X of an AnnData file (or of a layer, or of raw) as a source that is read in pieces.

    X is dense, CSR or CSC. The target is a column of obs, or the content of an .npy file.
    """
    target = request.target
    file = opened(path)
    X, names = _asked(file, request.layer, path)
    y = None
    if target is not None and target.endswith(".npy"):
        y = target_from_file(target, path)
    elif target is not None:
        y = observations(path, file).cells(target)
        if (y == "" if y.dtype == object else np.isnan(y)).any():
            raise ValueError(f"{target!r} of obs of {path} has missing entries; drop those samples")
    return _sparse(X, path, names, y) if is_group(X) else _dense(X, path, names, y)


def _asked(file: Any, layer: str | None, path: Path) -> tuple[Any, list[str]]:
    """Return the HDF5 object of X, a layer or raw (not read yet), and the names of its columns."""
    if layer in (None, "X"):
        return member_of(file, "X", path), _names(file, path)
    require_name(layer, _layers(file, path), f"{path} has no layer")
    if layer == "raw" and ("layers" not in file or "raw" not in file["layers"]):
        raw = member_of(file, "raw", path)
        return member_of(raw, "X", path), _names(raw, path)
    return member_of(member_of(file, "layers", path), layer, path), _names(file, path)


def _layers(file: Any, path: Path) -> list[str]:
    """Return the names of the layers, and "raw" if the file has it."""
    with understood(path, _KIND):
        found = [*member_of(file, "layers", path)] if "layers" in file else []
        return found + (["raw"] if "raw" in file and "raw" not in found else [])


def is_group(item: Any) -> bool:
    """Return whether an object of an HDF5 file is a group, not a dataset."""
    import h5py

    return isinstance(item, h5py.Group)


def _dense(X: Any, path: Path, names: list[str], y: NDArray[Any] | None) -> Stored:
    """Return a dense HDF5 dataset as a source of rows; ``y`` : the target, (n_samples,)."""
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "biuf":
        raise ValueError(
            f"X of {path} is {X.dtype} of shape {X.shape}; expected numbers, "
            "(n_samples, n_features)"
        )
    lines = DenseLines(X.shape, X.dtype, lambda start, stop: content(X, path, start, stop))
    return RowsOfFile(lines, names, y)


def _sparse(X: Any, path: Path, names: list[str], y: NDArray[Any] | None) -> Stored:
    """Return a CSR group as a source of rows, or a CSC group as a source of columns."""
    kind = str(attribute(X, "encoding-type", path, ""))
    if kind not in ("csr_matrix", "csc_matrix"):
        raise ValueError(f"X of {path} is {kind!r}; expected a dense array, csr or csc")
    with understood(path, _KIND):
        n_rows, n_columns = (int(size) for size in attribute(X, "shape", path))
    data, indices, indptr = (member_of(X, key, path) for key in ("data", "indices", "indptr"))
    parts = _Vector(data, path), _Vector(indices, path), content(indptr, path)
    return sparse_source(path, parts, (n_rows, n_columns), kind[:3], names, y)


def _names(file: Any, path: Path) -> list[str]:
    """Return the names of the features: the index of var, AnnData's table of the features."""
    frame = member_of(file, "var", path)
    names = _plain(member_of(frame, _index(frame, path), path), path)
    return [str(name) for name in content(names, path).tolist()]


def read_h5ad_matrix(path: Path) -> Any:
    """Return X of an .h5ad file in memory, dense or sparse, in the type that it has in the file."""
    return open_h5ad(path, Request()).whole()[0]


def _index(frame: Any, path: Path) -> str:
    """Return the name of the column that is the index of obs or var."""
    return str(attribute(frame, "_index", path, "_index"))


def _plain(column: Any, path: Path) -> Any:
    """Return the dataset of values of a column; refuse missing entries.

    Newer AnnData versions store a nullable column as a group of values and a mask.
    """
    if not is_group(column) or "mask" not in column:
        return column
    if content(member_of(column, "mask", path), path).any():
        raise ValueError(f"{path}: {column.name!r} has missing entries; drop those samples")
    return member_of(column, "values", path)


def observations(path: Path, file: Any = None) -> Observations:
    """Return the names of the samples and the columns of obs, AnnData's table of the samples.

    Only the names are read now; ``Observations.cells(name)`` reads one column. ``file`` is the open
    HDF5 file, if the caller has one.
    """
    file = file or opened(path)
    obs = member_of(file, "obs", path)
    index = _index(obs, path)
    with understood(path, _KIND):
        known = tuple(str(key) for key in obs if key not in (index, "__categories"))
    names = content(_plain(member_of(obs, index, path), path), path)

    def cells(name: str) -> NDArray[Any]:
        require_name(name, known, f"obs of {path} has no column")
        return _cells(obs, name, path)

    return Observations(tuple(map(str, names.tolist())), known, cells, tuple(_layers(file, path)))


def _cells(obs: Any, name: str, path: Path) -> NDArray[Any]:
    """Return a column of obs: floats (NaN if missing), or strings ("" if missing).

    The codes of a categorical column are replaced by its labels.
    """
    column = member_of(obs, name, path)
    labels = None
    gaps: Any = False
    if is_group(column) and "mask" in column:
        gaps = content(member_of(column, "mask", path), path).astype(bool)
        column = member_of(column, "values", path)
    elif is_group(column):
        labels = member_of(column, "categories", path)
        column = member_of(column, "codes", path)
    elif "__categories" in obs and name in member_of(obs, "__categories", path):  # of anndata 0.7
        labels = member_of(member_of(obs, "__categories", path), name, path)
    values = content(column, path)
    if labels is not None:
        known = [str(label) for label in content(_plain(labels, path), path).tolist()]
        with understood(path, _KIND):
            return np.array([*known, ""], dtype=object)[np.where(values < 0, -1, values)]
    if values.dtype.kind in "OSU":
        return np.where(gaps, "", values.astype(np.str_)).astype(object)
    return np.where(gaps, np.nan, values.astype(np.float64))
