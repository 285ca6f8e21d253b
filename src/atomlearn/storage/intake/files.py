"""Files, folders and AnnData objects as designs: column stores, PLINK .bed, AnnData."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from atomlearn.storage.formats.cell_files import read_cells
from atomlearn.storage.formats.format import Format
from atomlearn.storage.intake.registry import format_of


def open_path(path: str | os.PathLike[str]) -> Any:
    """Return X of a file or folder that an estimator received in place of an array.

    A column store or a PLINK file becomes a design, which reads the file in every pass. X of an
    .h5ad is read into memory.
    """
    opener = _format(path).open
    assert opener is not None
    return opener(Path(path))


def names_of_path(path: str | os.PathLike[str]) -> list[str] | None:
    """Return the names of the columns of ``open_path(path)``, or None if it has none."""
    names = _format(path).names
    return None if names is None else names(Path(path))


def names_of_anndata(X: Any) -> list[str]:
    """Return the names of the variables (columns) of X, an AnnData object."""
    return [str(name) for name in X.var_names]


def array_of_anndata(X: Any) -> Any:
    """Return the matrix of the AnnData object X; if X is backed by a file, read it from there."""
    if X.isbacked:
        return read_cells(Path(X.filename))
    if X.X is None:
        raise ValueError("the AnnData object has no X; pass one of its layers")
    return X.X


def _format(path: str | os.PathLike[str]) -> Format:
    """Return the format of ``path``, a file that estimators can open; refuse other files."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(
            f"there is no file or folder {str(file)!r}; X may be an array, a table, a column store "
            "(folder), a PLINK .bed or an .h5ad"
        )
    file_format = format_of(file)
    if file_format.open is None:
        raise ValueError(
            f"{file} is not a column store, .bed or .h5ad; make a store of it with `atomlearn "
            f"convert {file} {file.stem}.store`, or read it with atomlearn.datasets.read"
        )
    return file_format
