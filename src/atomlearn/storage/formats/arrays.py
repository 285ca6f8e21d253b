"""NumPy files: .npz with a dense or sparse X, and .npy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.messages import near_names
from atomlearn.storage.formats.numpy_files import load_npy
from atomlearn.storage.formats.table import (
    DataTable,
    Request,
    Schema,
    tidy_target,
)
from atomlearn.storage.formats.understood import understood

Arrays = Mapping[str, NDArray[Any]]

SPARSE_KEYS = ("data", "indices", "indptr", "shape")


def read_npy(path: Path, request: Request) -> DataTable:
    """Return the table of an .npy file: one row a sample.

    The target is ``last`` or the number of a column (counting from 0), or another .npy file;
    without one, all columns are features.
    """
    X, y, target = load_npy(path), None, request.target
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"{path} has shape {X.shape}; expected (n_samples, n_columns), none empty")
    column = _npy_column(target, X.shape[1])
    if column is not None:
        y = tidy_target(X[:, column], f"column {column} of {path}")
        X = np.delete(X, column, axis=1)
    elif target is not None:
        y = target_from_file(target, path)
    return DataTable(X, y, Schema(X.shape[1]), target, str(path))


def sparse_form(arrays: Arrays, path: Path) -> str:
    """Return ``csr`` or ``csc``, as ``scipy.sparse.save_npz`` notes it."""
    with understood(path, "sparse matrix"):
        form = str(arrays.get("format", np.array("csr")).astype(np.str_).item())
    if form not in ("csr", "csc"):
        raise ValueError(f"{path} is a sparse matrix in {form!r} format; save it as csr or csc")
    return form


def names_of(arrays: Arrays, n_features: int) -> tuple[str, ...] | None:
    """Return the feature names that the arrays hold, one a column, or None."""
    for key in ("feature_names", "features", "names", "genes", "words", "columns"):
        names = arrays.get(key)
        if names is not None and names.shape == (n_features,) and names.dtype.kind in "US":
            return tuple(name.strip() for name in names.astype(np.str_).tolist())
    return None


def named_target(
    arrays: Arrays, target: str | None, path: Path, missing: bool = False
) -> tuple[str | None, NDArray[Any] | None]:
    """Return the key of the target, by default ``y`` where there is one, and the target."""
    name = "y" if target is None and "y" in arrays else target
    return name, None if name is None else target_of(arrays, name, path, missing)


def target_of(arrays: Arrays, name: str, path: Path, missing: bool = False) -> NDArray[Any]:
    """Return the target under this key, as class names where ``classes`` gives them."""
    if name not in arrays:
        if Path(name).suffix == ".npy":
            return target_from_file(name, path)
        raise ValueError(f"{path} has no key {name!r} for the target{near_names(name, arrays)}")
    y = tidy_target(arrays[name], f"{name!r} of {path}", missing)
    classes = arrays.get("classes") if name == "y" else None
    if classes is None or y.dtype != np.int64:
        return y
    if y.min() < 0 or y.max() >= classes.size:
        raise ValueError(
            f"y of {path} must index its {classes.size} classes; found {y.min()} to {y.max()}"
        )
    return tidy_target(classes[y], f"'classes' of {path}")


def target_from_file(name: str, path: Path) -> NDArray[Any]:
    """Return the target of another .npy file, looked for here and beside ``path``."""
    for candidate in (Path(name), path.parent / name):
        if candidate.suffix == ".npy" and candidate.is_file():
            return tidy_target(load_npy(candidate), f"the target {candidate}")
    raise ValueError(
        f"{path} has no target {name!r}: expected 'last', the number of a column (counting from "
        "0), or an .npy file of targets (looked for here and beside the data)"
    )


def _npy_column(target: str | None, n_columns: int) -> int | None:
    """Return the column that ``target`` names, None where it names none."""
    if target == "last":
        return n_columns - 1
    if target is None or not target.isdecimal():
        return None
    if int(target) >= n_columns:
        raise ValueError(f"target {target} is not a column: there are {n_columns}, from 0")
    return int(target)
