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
from atomlearn.storage.formats.sources import About, ColumnSource, RowPiece, RowSource
from atomlearn.storage.formats.table import Request, near_names


class _Stored:
    """A dataset of an HDF5 file, flat, by ranges."""

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.dtype, self.size = dataset, dataset.dtype, int(dataset.size)

    def read(self, start: int, count: int) -> NDArray[Any]:
        return np.asarray(self._dataset[start : start + count])


class HdfRows(RowSource):
    """A dense dataset; positions are rows."""

    def __init__(self, dataset: Any, names: list[str], y: NDArray[Any] | None) -> None:
        self._dataset, self.y = dataset, y
        self.about = About(names, False, dataset.dtype)

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        n_rows, n_columns = self._dataset.shape
        step = max(1, piece_bytes // (8 * n_columns))
        for row in range(position, n_rows, step):
            X = np.asarray(self._dataset[row : row + step])
            yield RowPiece(X, None, row + X.shape[0])


def open_h5ad(path: Path, request: Request) -> RowSource | ColumnSource:
    """Return the source of AnnData's X, dense, CSR or CSC.

    The target is a column of obs, or another .npy file.
    """
    h5py, target = imported("h5py", "h5ad", path), request.target
    try:
        file = h5py.File(path, "r")
        X, names = file["X"], names_of_h5ad(path)
    except (OSError, KeyError) as error:
        raise ValueError(f"{path} is not a readable .h5ad file: {error}") from error
    y = None
    if target is not None:
        own = not target.endswith(".npy")
        y = _observation(file["obs"], target, path) if own else target_from_file(target, path)
    if isinstance(X, h5py.Dataset):
        return HdfRows(X, names, y)
    kind = str(X.attrs.get("encoding-type", ""))
    if kind not in ("csr_matrix", "csc_matrix"):
        raise ValueError(f"X of {path} is {kind!r}; expected a dense array, csr or csc")
    n_rows, n_columns = (int(size) for size in X.attrs["shape"])
    parts = _Stored(X["data"]), _Stored(X["indices"]), X["indptr"][:]
    return sparse_source(parts, (n_rows, n_columns), kind[:3], names, y)


def names_of_h5ad(path: Path) -> list[str]:
    """Return the names of the variables, which are the columns of X."""
    with imported("h5py", "h5ad", path).File(path, "r") as file:
        return _text(file["var"][_index(file["var"])])


def read_matrix(path: Path) -> Any:
    """Return X of an .h5ad file in memory, dense or sparse, in the type that the file has."""
    return open_h5ad(path, Request()).whole()[0]


def _index(frame: Any) -> str:
    return str(frame.attrs.get("_index", "_index"))


def _text(dataset: Any) -> list[str]:
    return [str(item) for item in dataset.asstr()[:]]


def _observation(obs: Any, target: str, path: Path) -> NDArray[Any]:
    """Return a column of obs: numbers, text, or the labels of a categorical."""
    if target not in obs:
        known = [key for key in obs if key != _index(obs)]
        raise ValueError(f"{path} has no column {target!r} in obs{near_names(target, known)}")
    column = obs[target]
    if hasattr(column, "keys"):
        if "categories" not in column or "codes" not in column:
            raise ValueError(f"column {target!r} of obs is {column.attrs.get('encoding-type')!r}")
        codes, categories = column["codes"][:], column["categories"]
        if (codes < 0).any():
            raise ValueError(f"column {target!r} of obs has missing entries; drop those samples")
        labels: Any = _text(categories) if categories.dtype.kind == "O" else categories[:]
        chosen: NDArray[Any] = np.asarray(labels)[codes]
        return chosen
    values: Any = _text(column) if column.dtype.kind == "O" else column[:]
    return np.asarray(values)
