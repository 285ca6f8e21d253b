"""NumPy files: .npz with a dense or sparse X, and .npy."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.formats.table import DataTable, Schema, near_names, tidy_target

Arrays = Mapping[str, NDArray[Any]]

#: Keys under which feature names are looked for.
_NAME_KEYS = ("feature_names", "features", "genes", "words", "columns")
_SPARSE_KEYS = ("data", "indices", "indptr", "shape")
_SPARSE_FORMATS = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}


def read_npz(path: Path, target: str | None, schema: Schema | None) -> DataTable:
    """Return the table of an .npz file.

    X is the key ``X`` (divided by the key ``scale``, where there is one: integers stored for exact
    decimals) or the keys ``data, indices, indptr, shape`` of a CSR matrix (or of the ``format``
    that ``scipy.sparse.save_npz`` notes); a ``data`` of length 1 stands for every entry. The target
    is the key named, by default ``y`` where there is one, or another .npy file; where a key
    ``classes`` names the values 0, 1, ... of ``y``, y holds those names.
    """
    arrays = load_npz(path)
    X = matrix_of(arrays, path)
    names = names_of(arrays, X.shape[1])
    name = "y" if target is None and "y" in arrays else target
    y = None if name is None else target_of(arrays, name, path)
    return _table(path, X, y, name, names, schema)


def read_npy(path: Path, target: str | None, schema: Schema | None) -> DataTable:
    """Return the table of an .npy file: one row a sample.

    The target is ``last`` or the number of a column (counting from 0), or another .npy file;
    without one, all columns are features.
    """
    matrix = _load_npy(path)
    if matrix.ndim != 2:
        raise ValueError(f"{path} has shape {matrix.shape}; expected (n_samples, n_columns)")
    column = _npy_column(target, matrix.shape[1])
    if target is None or column is None:
        X = matrix
        y = None if target is None else _target_from_file(target, path)
    else:
        X = np.delete(matrix, column, axis=1)
        y = tidy_target(matrix[:, column], f"column {column} of {path}")
    return _table(path, _dense(X, path), y, target, None, schema)


def matrix_of(arrays: Arrays, path: Path, key: str = "X") -> Any:
    """Return the finite float matrix that the arrays of an .npz file hold."""
    if key in arrays:
        X = arrays[key]
        if X.ndim != 2:
            raise ValueError(
                f"{key} of {path} has shape {X.shape}; expected (n_samples, n_features)"
            )
        X = _dense(X, path)
        scale = arrays.get("scale")
        if scale is None or np.all(scale == 1):
            return X
        if not np.all((scale != 0) & np.isfinite(scale)):
            raise ValueError(f"scale of {path} must be finite and not zero: X is divided by it")
        return X / scale
    if all(part in arrays for part in _SPARSE_KEYS):
        return _sparse(arrays, path)
    raise ValueError(
        f"{path} holds {', '.join(arrays) or 'nothing'}; expected {key} (dense) or "
        f"{', '.join(_SPARSE_KEYS)} (sparse)"
    )


def _sparse(arrays: Arrays, path: Path) -> Any:
    data, indices, indptr, shape = (arrays[key] for key in _SPARSE_KEYS)
    form = arrays.get("format", np.array("csr")).item()
    form = form.decode() if isinstance(form, bytes) else str(form)
    if form not in _SPARSE_FORMATS:
        raise ValueError(f"{path} is a sparse matrix in {form!r} format; save it as csr or csc")
    _numeric(data, path)
    if data.size == 1 and indices.size != 1:
        data = np.full(indices.size, data.ravel()[0])
    values = _finite(data.astype(_float_type(data)), path)
    for key in ("indices", "indptr", "shape"):
        if arrays[key].dtype.kind not in "iu":
            raise ValueError(
                f"{path} is a broken sparse matrix: {key} has type {arrays[key].dtype}; expected "
                "whole numbers"
            )
    try:
        X = _SPARSE_FORMATS[form]((values, indices, indptr), shape=tuple(shape.tolist()))
        X.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is a broken sparse matrix: {error}") from error
    X.sum_duplicates()
    return X


def _dense(X: NDArray[Any], path: Path) -> NDArray[Any]:
    if 0 in X.shape:
        raise ValueError(f"{path} has shape {X.shape}: it is empty")
    _numeric(X, path)
    return _finite(X.astype(_float_type(X), copy=False), path)


def _numeric(values: NDArray[Any], path: Path) -> None:
    if values.dtype.kind not in "biuf":
        raise ValueError(f"X of {path} has type {values.dtype}; expected real numbers")


def _float_type(values: NDArray[Any]) -> type[np.float32 | np.float64]:
    """Return float32 for float32 and float16, else float64."""
    return np.float32 if values.dtype in (np.float32, np.float16) else np.float64


def _finite(values: NDArray[Any], path: Path) -> NDArray[Any]:
    # A sum is finite only if every term is, and needs no temporary; overflow is looked at again.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return values
    bad = ~np.isfinite(values)
    if bad.any():
        first = np.unravel_index(int(np.argmax(bad)), values.shape)
        where = (
            f"row {first[0]}, column {first[1]} (counting from 0)"
            if len(first) == 2
            else f"stored entry {first[0]}"
        )
        raise ValueError(
            f"X of {path} has {int(bad.sum())} values that are NaN or infinite, the first at "
            f"{where}; fill them in, or drop those samples"
        )
    return values


def names_of(arrays: Arrays, n_features: int) -> tuple[str, ...] | None:
    """Return the feature names that the arrays hold, one a column, or None."""
    for key in _NAME_KEYS:
        names = arrays.get(key)
        if names is not None and names.shape == (n_features,) and names.dtype.kind in "US":
            return tuple(names.astype(np.str_).tolist())
    return None


def target_of(arrays: Arrays, name: str, path: Path) -> NDArray[Any]:
    """Return the target under this key, as class names where ``classes`` gives them."""
    if name not in arrays:
        if Path(name).suffix == ".npy":
            return _target_from_file(name, path)
        raise ValueError(f"{path} has no key {name!r} for the target{near_names(name, arrays)}")
    y = tidy_target(arrays[name], f"{name!r} of {path}")
    classes = arrays.get("classes") if name == "y" else None
    if classes is None or y.dtype != np.int64:
        return y
    if y.min() < 0 or y.max() >= classes.size:
        raise ValueError(
            f"y of {path} must index its {classes.size} classes; found {y.min()} to {y.max()}"
        )
    return tidy_target(classes[y], f"'classes' of {path}")


def _target_from_file(name: str, path: Path) -> NDArray[Any]:
    """Return the target of another .npy file, looked for here and beside ``path``."""
    for candidate in (Path(name), path.parent / name):
        if candidate.suffix == ".npy" and candidate.is_file():
            return tidy_target(_load_npy(candidate), f"the target {candidate}")
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


def _table(
    path: Path,
    X: Any,
    y: NDArray[Any] | None,
    target: str | None,
    names: tuple[str, ...] | None,
    schema: Schema | None,
) -> DataTable:
    if y is not None and y.size != X.shape[0]:
        raise ValueError(f"{path} has {X.shape[0]} samples but {y.size} targets")
    if schema is None:
        schema = Schema(X.shape[1], names)
    elif X.shape[1] != schema.n_features or (schema.names and names and names != schema.names):
        difference = (
            f"{X.shape[1]} columns" if X.shape[1] != schema.n_features else "other column names"
        )
        raise ValueError(
            f"{path} has {difference}; the model was fitted to {schema.n_features} columns"
        )
    return DataTable(X, y, schema, target, str(path))


def load_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file; pickled objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (ValueError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        raise ValueError(f"{path} is not a readable .npz file: {error}") from error


def _load_npy(path: Path) -> NDArray[Any]:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a readable .npy file: {error}") from error
