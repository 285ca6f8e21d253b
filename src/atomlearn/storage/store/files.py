"""Files and folders as designs: column stores, PLINK .bed, AnnData .h5ad."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from atomlearn.core.data.frames import library_of
from atomlearn.storage.spread.distributed import Dask
from atomlearn.storage.store import store_file as store
from atomlearn.storage.store.on_disk import OnDisk
from atomlearn.storage.store.plink import PlinkBed, read_variants


def is_path(X: object) -> bool:
    """Return whether X names a file or folder."""
    return isinstance(X, (str, os.PathLike)) and not isinstance(X, np.ndarray)


def is_anndata(X: object) -> bool:
    """Return whether X is an AnnData object."""
    return library_of(X) == "anndata" and hasattr(X, "var_names")


def open_path(path: str | os.PathLike[str]) -> Any:
    """Return the design of a store or .bed, or the array that an .h5ad holds (read into memory)."""
    file = Path(path)
    kind = _kind(file)
    if kind == "store":
        return OnDisk(file)
    return PlinkBed(file) if kind == "bed" else _read_h5ad(file)


def names_of_path(path: str | os.PathLike[str]) -> list[str] | None:
    """Return the names of the columns of what ``open_path`` opens, None where it has none."""
    file = Path(path)
    kind = _kind(file)
    if kind == "store":
        return store.read_names(file, store.read_manifest(file))
    if kind == "bed":
        return read_variants(file.with_suffix(".bim")).names
    with _opened(file) as held:
        frame = held["var"]
        return [str(name) for name in frame[str(frame.attrs.get("_index", "_index"))].asstr()[:]]


def names_of_design(X: object) -> list[str] | None:
    """Return the names of the columns of a design in files or of a table, None for others."""
    return X.feature_names if isinstance(X, (OnDisk, PlinkBed, Dask)) else None


def array_of_anndata(X: Any) -> Any:
    """Return X of an AnnData object: what it holds, or what its file does."""
    if X.isbacked:
        return _read_h5ad(Path(X.filename))
    if X.X is None:
        raise ValueError("the AnnData object has no X; pass one of its layers")
    return X.X


def _kind(file: Path) -> str:
    """Return "store", "bed" or "h5ad", or say what else could be done."""
    if file.is_dir():
        return "store"
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no file or folder {str(file)!r}; X may be an array, a table, a column store "
            "(folder), a PLINK .bed or an .h5ad"
        )
    if file.suffix.lower() in (".bed", ".h5ad"):
        return file.suffix.lower()[1:]
    raise ValueError(
        f"{file} is not a column store, .bed or .h5ad; make a store of it with `atomlearn convert "
        f"{file} {file.stem}.store`, or read it with atomlearn.datasets.read_table"
    )


def _opened(file: Path) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ValueError(f"reading {file} needs h5py: pip install 'atomlearn[h5ad]'") from error
    try:
        return h5py.File(file, "r")
    except OSError as error:
        raise ValueError(f"{file} is not a readable .h5ad file: {error}") from error


def _read_h5ad(file: Path) -> Any:
    """Return X of an .h5ad file, dense or sparse."""
    with _opened(file) as held:
        X = held.get("X")
        if X is None:
            raise ValueError(f"{file} has no X; expected an AnnData file")
        if not hasattr(X, "keys"):
            return np.asarray(X[:])
        kind = str(X.attrs.get("encoding-type", ""))
        containers = {"csr_matrix": sp.csr_matrix, "csc_matrix": sp.csc_matrix}
        if kind not in containers:
            raise ValueError(f"X of {file} is {kind!r}; expected a dense array, csr or csc")
        made = containers[kind](
            tuple(int(size) for size in X.attrs["shape"]), dtype=X["data"].dtype
        )
        # Set one by one: as_design checks them before any is followed.
        made.data, made.indices, made.indptr = X["data"][:], X["indices"][:], X["indptr"][:]
        return made
