"""Rows or columns of AnnData files, read piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.arrays import target_from_file
from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.flat import sparse_source
from atomlearn.storage.formats.heaps import check_heaps
from atomlearn.storage.formats.held import BELIEVED, fits, hold
from atomlearn.storage.formats.sources import About, ColumnSource, RowPiece, RowSource
from atomlearn.storage.formats.table import Request, near_names
from atomlearn.storage.formats.understood import understood

_KIND = ".h5ad file"


class _Stored:
    """A dataset of an HDF5 file, flat, by ranges."""

    def __init__(self, dataset: Any, path: Path) -> None:
        self._dataset, self._path = dataset, path
        self.dtype, self.size = dataset.dtype, int(dataset.size)
        _held(dataset, path)
        if dataset.ndim != 1 or self.dtype.kind not in "biuf":
            raise ValueError(f"{dataset.name} of {path} must be a vector of numbers")

    def read(self, start: int, count: int) -> NDArray[Any]:
        fits(self._path, "a piece of it", count * self.dtype.itemsize)
        with understood(self._path, _KIND):
            return np.asarray(self._dataset[start : start + count])


class HdfRows(RowSource):
    """A dense dataset; positions are rows."""

    def __init__(self, dataset: Any, path: Path, names: list[str], y: NDArray[Any] | None) -> None:
        self._dataset, self._path, self.y = dataset, path, y
        _held(dataset, path)
        if dataset.ndim != 2 or 0 in dataset.shape or dataset.dtype.kind not in "biuf":
            raise ValueError(
                f"X of {path} is {dataset.dtype} of shape {dataset.shape}; expected numbers, "
                "(n_samples, n_features)"
            )
        self.about = About(names, False, dataset.dtype)

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        n_rows, n_columns = self._dataset.shape
        step = max(1, piece_bytes // (8 * n_columns))
        for row in range(position, n_rows, step):
            with understood(self._path, _KIND):
                X = np.asarray(self._dataset[row : row + step])
            yield RowPiece(X, None, row + X.shape[0])


def open_h5ad(path: Path, request: Request) -> RowSource | ColumnSource:
    """Return the source of AnnData's X, dense, CSR or CSC.

    The target is a column of obs, or another .npy file.
    """
    h5py, target = imported("h5py", "h5ad", path), request.target
    check_heaps(path)
    with understood(path, _KIND):
        file = h5py.File(path, "r")
        X = file["X"]
    names, y = names_of_h5ad(path), None
    if target is not None:
        own = not target.endswith(".npy")
        y = _observation(file, target, path) if own else target_from_file(target, path)
    if isinstance(X, h5py.Dataset):
        return HdfRows(X, path, names, y)
    with understood(path, _KIND):
        kind = str(X.attrs.get("encoding-type", ""))
        if kind not in ("csr_matrix", "csc_matrix"):
            raise ValueError(f"X is {kind!r}; expected a dense array, csr or csc")
        n_rows, n_columns = (int(size) for size in X.attrs["shape"])
        data, indices, indptr = (X[key] for key in ("data", "indices", "indptr"))
        _held(indptr, path)
        parts = _Stored(data, path), _Stored(indices, path), np.asarray(indptr[:])
    return sparse_source(parts, (n_rows, n_columns), kind[:3], names, y)


def _held(dataset: Any, path: Path) -> None:
    """Hold the size that a dataset declares against the bytes it has in the file."""
    with understood(path, _KIND):
        declared, stored = int(dataset.size) * dataset.dtype.itemsize, dataset.id.get_storage_size()
        plain = dataset.chunks is None
        what = f"{dataset.name!r}"
    # A compact or contiguous dataset is stored as it is; filters may shrink the others.
    hold(path, what, declared, stored, 1 if plain and stored else BELIEVED.filtered)


def names_of_h5ad(path: Path) -> list[str]:
    """Return the names of the variables, which are the columns of X."""
    h5py = imported("h5py", "h5ad", path)
    check_heaps(path)
    with understood(path, _KIND), h5py.File(path, "r") as file:
        return _text(file["var"][_index(file["var"])], path)


def read_matrix(path: Path) -> Any:
    """Return X of an .h5ad file in memory, dense or sparse, in the type that the file has."""
    return open_h5ad(path, Request()).whole()[0]


def _index(frame: Any) -> str:
    return str(frame.attrs.get("_index", "_index"))


def _plain(column: Any) -> Any:
    """Return the values of a column that newer files keep beside a mask of what is missing."""
    if "mask" not in getattr(column, "keys", tuple)():
        return column
    if column["mask"][:].any():
        raise ValueError(f"{column.name!r} has missing entries; drop those samples")
    return column["values"]


def _text(column: Any, path: Path) -> list[str]:
    dataset = _plain(column)
    _held(dataset, path)
    return [str(item) for item in dataset.asstr()[:]]


def _observation(file: Any, target: str, path: Path) -> NDArray[Any]:
    """Return a column of obs: numbers, text, or the labels of a categorical."""
    with understood(path, _KIND):
        obs = file["obs"]
        known = [str(key) for key in obs if key != _index(obs)]
    if target not in known:
        raise ValueError(f"{path} has no column {target!r} in obs{near_names(target, known)}")
    with understood(path, _KIND):
        return _values(obs[target], target, path)


def _values(column: Any, target: str, path: Path) -> NDArray[Any]:
    column = _plain(column)
    if hasattr(column, "keys"):
        if "categories" not in column or "codes" not in column:
            raise ValueError(f"column {target!r} of obs is {column.attrs.get('encoding-type')!r}")
        codes, categories = column["codes"][:], _plain(column["categories"])
        if (codes < 0).any():
            raise ValueError(f"column {target!r} of obs has missing entries; drop those samples")
        labels: Any = _text(categories, path) if categories.dtype.kind == "O" else categories[:]
        chosen: NDArray[Any] = np.asarray(labels)[codes]
        return chosen
    values: Any = _text(column, path) if column.dtype.kind == "O" else column[:]
    return np.asarray(values)
