"""MATLAB files: the matrix X, the target y, and names if there are any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import all_text
from atomlearn.core import is_sparse
from atomlearn.storage.formats.hdf import open_hdf
from atomlearn.storage.formats.held import understood
from atomlearn.storage.formats.messages import require_name
from atomlearn.storage.formats.numpy_files import stored_names
from atomlearn.storage.formats.table import DataTable, Request, Schema

#: MATLAB's classes of arrays that are read, in addition to integers: numbers, text, cells of text.
_KINDS = ("double", "single", "logical", "sparse", "char", "cell")
#: Names under which the matrix and the target are looked for.
_X = ("X", "x", "data", "features", "A")
_Y = ("y", "Y", "labels", "label", "target", "gnd")


def read_mat(path: Path, request: Request) -> DataTable:
    """Return the table of a .mat file; version 7.3 needs h5py.

    X is the matrix called X (or x, data, features, A), else the largest one. The target is the
    array that ``request`` names (default: y, Y, labels, label, target or gnd, if present). Names of
    columns are taken from an array of text with one name for each column.
    """
    arrays = _arrays(path)
    sizes = {name: value.shape for name, value in arrays.items() if value.ndim == 2}
    # Candidates for X, the best one first; MATLAB stores vectors as matrices of one row or column.
    matrices = [name for name in _X if name in sizes and min(sizes[name]) > 1]
    if not matrices:
        matrices = sorted(
            (name for name in sizes if min(sizes[name]) > 1), key=lambda name: -np.prod(sizes[name])
        )
    if not matrices:
        raise ValueError(f"{path} holds no matrix; expected X, (n_samples, n_features)")
    X = arrays[matrices[0]]
    name = request.target or next((key for key in _Y if key in arrays), None)
    y = None
    if name is not None:
        require_name(name, arrays, f"{path} has no array for the target")
        y = np.asarray(arrays[name])
    if y is not None and X.shape[0] != y.size == X.shape[1]:
        X = X.T  # samples are columns, as is common for images
    texts = {key: value.ravel() for key, value in arrays.items() if not is_sparse(value)}
    return DataTable(X, y, Schema(X.shape[1], stored_names(texts, X.shape[1])), name, str(path))


def _arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of numbers and text of a .mat file of any version, by name.

    Sparse matrices are converted to CSC. Arrays of other types are left out.
    """
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import matfile_version

    # Major version 2 is MATLAB's version 7.3, which SciPy does not read.
    with understood(path, ".mat file"):
        is_hdf = matfile_version(path)[0] == 2
        listed = [] if is_hdf else whosmat(path)
    if is_hdf:
        return _hdf_arrays(path)
    # Only arrays of types that are used are loaded; SciPy adds keys such as __header__.
    with understood(path, ".mat file"):
        numeric = [name for name, _, kind in listed if kind in _KINDS or "int" in kind]
        arrays = loadmat(path, squeeze_me=False, variable_names=numeric)
    return {
        key: value.tocsc() if is_sparse(value) else _plain(value)
        for key, value in arrays.items()
        if not key.startswith("__")
    }


def _plain(value: NDArray[Any]) -> NDArray[Any]:
    """Return an array ``value`` of MATLAB cells as an array of text, empty if any is no text.

    Arrays of other types are returned unchanged.
    """
    if value.dtype != object:
        return value
    cells = [cell.item() if np.size(cell) == 1 else None for cell in value.ravel()]
    if all_text(cells):
        return np.array(cells, dtype=np.str_).reshape(value.shape)
    return np.empty((0,))


def _hdf_arrays(path: Path) -> dict[str, Any]:
    """Return the numeric arrays of a .mat file of version 7.3, by name.

    The file is HDF5 with reversed axes. Groups, which have structures and sparse matrices, are left
    out, and so are names that begin with "#", which MATLAB uses for itself.
    """
    root = open_hdf(path)
    members = {name: root.member(name) for name in root.names() if not name.startswith("#")}
    arrays = {
        name: item.content().T
        for name, item in members.items()
        if not item.is_group and item.dtype.kind in "biuf"
    }
    root.close()
    return arrays
