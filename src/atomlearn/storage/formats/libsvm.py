"""libsvm (svmlight) files, plain or compressed, through scikit-learn's parser."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.formats.compressed import open_bytes, whole_lines
from atomlearn.storage.formats.format import About, RowPiece, RowSource
from atomlearn.storage.formats.held import LIMITS, understood
from atomlearn.storage.formats.table import (
    DataTable,
    Request,
    Schema,
    sparse_size,
)


def looks_like_libsvm(line: str) -> bool:
    """Tell whether a line is ``label index:value index:value ...``."""
    return bool(re.match(r"[^\s,;:]+(\s+qid:\d+)?(\s+\d+:\S+)+\s*(#.*)?$", line.strip()))


def read_libsvm(path: Path, request: Request) -> DataTable:
    """Return the table of a libsvm file; its labels are the target.

    A file whose indices start at 1, as they should, has its feature 1 in column 0 of X, called
    ``x1``. A file with an index 0 counts from 0. With a ``schema``, the counting and the number of
    columns are those of the file it came from.
    """
    _check_target(path, request.target)
    schema = request.schema
    if schema is not None and schema.names is not None:
        raise ValueError(
            f"{path} has columns without names, but the model was fitted to named columns; give "
            "it data in the format it was fitted to"
        )
    with open_bytes(path) as stream:
        counted_from_zero, labels = _parse(stream, path)
    if counted_from_zero.shape[0] == 0 or counted_from_zero.nnz == 0:
        raise ValueError(f"{path} holds no data; expected lines of 'label index:value ...'")
    n_columns = counted_from_zero.shape[1]
    if schema is None:
        sparse_size(path, counted_from_zero.shape, counted_from_zero.nnz, n_columns)
    indices = counted_from_zero.indices
    lowest = int(indices.min())
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
    return DataTable(X, labels, schema or Schema(n_features, first_index=first), "y", str(path))


class LibsvmRows(RowSource):
    """``label index:value ...`` lines; positions are bytes of the text."""

    def __init__(self, path: Path, request: Request) -> None:
        _check_target(path, request.target)
        self.path = path
        self.about = About(None, True, np.dtype(np.float64), drops_first=True)

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        size, entries = max(piece_bytes // LIMITS.copies, 1), 0
        with open_bytes(self.path) as stream:
            stream.seek(position)
            while text := whole_lines(stream, size, self.path):
                position += len(text)
                X, y = _parse(io.BytesIO(text), self.path, f" before byte {position:,} of its text")
                entries += X.nnz
                sparse_size(self.path, X.shape, entries, X.shape[1])
                if X.shape[0]:
                    yield RowPiece(sp.csr_array(X), y, position)


def _check_target(path: Path, target: str | None) -> None:
    if target not in (None, "y"):
        raise ValueError(
            f"{path} is a libsvm file, whose only target is the first number of each line; "
            f"received target {target!r}. Leave the target out"
        )


def _parse(
    stream: BinaryIO, path: Path, where: str = ""
) -> tuple[sp.csr_matrix, NDArray[np.float64]]:
    """Return the entries, columns counted from zero, and the labels."""
    # Imported here: scikit-learn's datasets take longer to import than most files to read.
    from sklearn.datasets import load_svmlight_file

    remedy = "; expected lines of 'label index:value index:value ...' with ascending indices"
    with understood(path, f"libsvm file{where}", remedy):
        X, y = load_svmlight_file(stream, zero_based=True)
    return X, y
