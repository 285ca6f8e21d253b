"""libsvm (svmlight) files, plain, .gz or .bz2, through scikit-learn's parser."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from atomlearn.storage.formats.table import DataTable, Schema, tidy_target

_LINE = re.compile(r"^[^\s,;:]+(\s+qid:\d+)?(\s+\d+:\S+)+\s*(#.*)?$")


def looks_like_libsvm(line: str) -> bool:
    """Tell whether a line is ``label index:value index:value ...``."""
    return _LINE.match(line.strip()) is not None


def read_libsvm(path: Path, target: str | None, schema: Schema | None) -> DataTable:
    """Return the table of a libsvm file; its labels are the target.

    A file whose indices start at 1, as they should, has its feature 1 in column 0 of X, called
    ``x1``. A file with an index 0 counts from 0. With a ``schema``, the counting and the number of
    columns are those of the file it came from.
    """
    if target not in (None, "y"):
        raise ValueError(
            f"{path} is a libsvm file, whose only target is the first number of each line; "
            f"received target {target!r}. Leave the target out"
        )
    if schema is not None and schema.names is not None:
        raise ValueError(
            f"{path} has columns without names, but the model was fitted to named columns; give "
            "it data in the format it was fitted to"
        )
    counted_from_zero, labels = _parse(path)
    n_columns = counted_from_zero.shape[1]
    indices = counted_from_zero.indices
    lowest = int(indices.min()) if indices.size else 1
    first = (1 if lowest > 0 else 0) if schema is None else schema.first_index
    n_features = n_columns - first if schema is None else schema.n_features
    if lowest < first or n_columns > n_features + first:
        raise ValueError(
            f"{path} has feature indices {lowest} to {n_columns - 1}; the model was fitted to "
            f"{first} to {first + n_features - 1}"
        )
    indices -= indices.dtype.type(first)
    X = sp.csr_matrix(
        (counted_from_zero.data, indices, counted_from_zero.indptr),
        shape=(counted_from_zero.shape[0], n_features),
    )
    if not np.isfinite(X.data).all():
        row = int(np.searchsorted(X.indptr, np.argmin(np.isfinite(X.data)), side="right"))
        raise ValueError(f"sample {row} of {path} (counting from 1) has a NaN or infinite value")
    y = tidy_target(labels, f"the target of {path}")
    return DataTable(X, y, schema or Schema(n_features, first_index=first), "y", str(path))


def _parse(path: Path) -> tuple[sp.csr_matrix, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    # Imported here: scikit-learn's datasets take longer to import than most files to read.
    from sklearn.datasets import load_svmlight_file

    try:
        X, labels = load_svmlight_file(str(path), zero_based=True)
    except ValueError as error:
        raise ValueError(
            f"{path} is not a readable libsvm file ({error}); expected lines of "
            "'label index:value index:value ...' with ascending indices"
        ) from error
    if X.shape[0] == 0 or X.nnz == 0:
        raise ValueError(f"{path} holds no data; expected lines of 'label index:value ...'")
    return X, labels
