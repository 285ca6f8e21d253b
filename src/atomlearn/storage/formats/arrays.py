"""NumPy files: .npz with a dense or sparse X, and .npy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.formats.messages import near_names
from atomlearn.storage.formats.numpy_files import Archive, load_npy
from atomlearn.storage.formats.table import (
    DataTable,
    Request,
    Schema,
    finite_matrix,
    finite_values,
    sparse_size,
    tidy_target,
)
from atomlearn.storage.formats.understood import understood

Arrays = Mapping[str, NDArray[Any]]

SPARSE_KEYS = ("data", "indices", "indptr", "shape")


def read_npz(path: Path, request: Request) -> DataTable:
    """Return the table of an .npz file.

    X is the key ``X`` (divided by the key ``scale``, where there is one: integers stored for exact
    decimals) or the keys ``data, indices, indptr, shape`` of a CSR matrix (or of the ``format``
    that ``scipy.sparse.save_npz`` notes); a ``data`` of length 1 stands for every entry. The target
    is the key named, by default ``y`` where there is one, or another .npy file; where a key
    ``classes`` names the values 0, 1, ... of ``y``, y holds those names.
    """
    arrays = Archive(path)
    X = matrix_of(arrays, path, request.missing)
    name, y = named_target(arrays, request.target, path, request.missing)
    return DataTable(X, y, Schema(X.shape[1], names_of(arrays, X.shape[1])), name, str(path))


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
    return DataTable(
        finite_matrix(X, path, request.missing), y, Schema(X.shape[1]), target, str(path)
    )


def matrix_of(arrays: Arrays, path: Path, missing: bool = False) -> Any:
    """Return the float matrix of an .npz file, finite but for NaN where ``missing``."""
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2:
            raise ValueError(f"X of {path} has shape {X.shape}; expected (n_samples, n_features)")
        X, scale = finite_matrix(X, path, missing), scale_of(arrays, path)
        return X if scale is None else X / scale
    if all(part in arrays for part in SPARSE_KEYS):
        return _sparse(arrays, path)
    raise no_matrix(arrays, path)


def no_matrix(keys: Iterable[str], path: Path) -> ValueError:
    """Return the error for an .npz file without X."""
    return ValueError(
        f"{path} holds {', '.join(keys) or 'nothing'}; expected X (dense) or "
        f"{', '.join(SPARSE_KEYS)} (sparse)"
    )


def scale_of(arrays: Arrays, path: Path) -> NDArray[Any] | None:
    """Return what X is to be divided by, None for nothing."""
    scale = arrays.get("scale")
    if scale is None or np.all(scale == 1):
        return None
    if scale.dtype.kind not in "iuf" or not np.all((scale != 0) & np.isfinite(scale)):
        raise ValueError(f"scale of {path} must be finite and not zero: X is divided by it")
    if scale.ndim > 1:
        raise ValueError(f"scale of {path} has shape {scale.shape}; expected one number a column")
    return scale


def sparse_form(arrays: Arrays, path: Path) -> str:
    """Return ``csr`` or ``csc``, as ``scipy.sparse.save_npz`` notes it."""
    with understood(path, "sparse matrix"):
        form = str(arrays.get("format", np.array("csr")).astype(np.str_).item())
    if form not in ("csr", "csc"):
        raise ValueError(f"{path} is a sparse matrix in {form!r} format; save it as csr or csc")
    return form


def _sparse(arrays: Arrays, path: Path) -> Any:
    parts = data, indices, indptr, shape = tuple(arrays[key] for key in SPARSE_KEYS)
    container = sp.csr_matrix if sparse_form(arrays, path) == "csr" else sp.csc_matrix
    whole = all(part.ndim == 1 and part.dtype.kind in "iu" for part in parts[1:])
    if not whole or data.ndim != 1 or shape.size != 2:
        raise ValueError(
            f"{path} is a broken sparse matrix: shape must be two whole numbers, indices and "
            "indptr vectors of such, and data a vector"
        )
    if data.size == 1 and indices.size != 1:
        data = np.full(indices.size, data[0])
    values = finite_values(data, path)
    n_rows, n_columns = (int(size) for size in shape)
    sparse_size(path, (n_rows, n_columns), indices.size, max(n_rows, n_columns))
    # SciPy's check asks for none of this where the last of indptr is not positive.
    ends = indptr.astype(np.float64)
    if indptr.size and not (ends[0] == 0 and np.all(np.diff(ends) >= 0)):
        raise ValueError(f"{path} is a broken sparse matrix: indptr must begin at 0, and not fall")
    with understood(path, "sparse matrix"):
        X = container((values, indices, indptr), shape=(n_rows, n_columns))
        X.check_format(full_check=True)
        X.sum_duplicates()  # meets what the check lets through
    return X


def names_of(arrays: Arrays, n_features: int) -> tuple[str, ...] | None:
    """Return the feature names that the arrays hold, one a column, or None."""
    for key in ("feature_names", "features", "genes", "words", "columns"):
        names = arrays.get(key)
        if names is not None and names.shape == (n_features,) and names.dtype.kind in "US":
            return tuple(names.astype(np.str_).tolist())
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
