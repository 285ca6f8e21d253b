"""libsvm (svmlight) files, plain or compressed, through scikit-learn's parser."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from atomlearn.storage.formats.compressed import open_bytes, whole_lines
from atomlearn.storage.formats.format import About, RowPiece, RowSource
from atomlearn.storage.formats.held import LIMITS, understood
from atomlearn.storage.formats.table import DataTable, Request, Schema, sparse_size

#: Several labels at the beginning of a line, as in files for multi-label classification.
_SEVERAL_LABELS = re.compile(rb"^([\w.+-]+(?:,[\w.+-]+)+)[ \t]", re.MULTILINE)


def looks_like_libsvm(line: str) -> bool:
    """Return whether a line is ``label index:value index:value ...``; # begins a comment."""
    return bool(re.match(r"[^\s,;:]+(\s+qid:\d+)?(\s+\d+:\S+)+\s*(#.*)?$", line.strip()))


def read_libsvm(path: Path, request: Request) -> DataTable:
    """Return the table of the libsvm file ``path``; its labels are the target.

    If the smallest index is 1 or more, feature 1 is column 0 of X and is called ``x1``. If the file
    has an index 0, counting starts at 0. If the ``request`` has a schema (the columns of a fitted
    model), the first index and the number of columns are those of the schema.
    """
    schema = request.schema
    if schema is not None and schema.names is not None:
        raise ValueError(
            f"{path} has columns without names, but the model was fitted to named columns; give "
            "it data in the format it was fitted to"
        )
    X, labels = LibsvmRows(path, request).whole()
    # Columns are numbered as in the file here; ``first`` is the number of the first feature.
    lowest = int(X.indices.min())
    n_columns = X.shape[1]
    first = int(lowest > 0) if schema is None else schema.first_index
    n_features = n_columns - first if schema is None else schema.n_features
    if lowest < first or n_columns > n_features + first:
        raise ValueError(
            f"{path} has feature indices {lowest} to {n_columns - 1}; the model was fitted to "
            f"{first} to {first + n_features - 1}"
        )
    X.indices -= first
    X.resize(X.shape[0], n_features)
    return DataTable(X, labels, schema or Schema(n_features, first_index=first), "y", str(path))


class LibsvmRows(RowSource):
    """The rows of a libsvm file, with lines ``label index:value ...``.

    Positions are bytes of the decompressed text. Column 0 is empty if the file counts from 1.

    Parameters
    ----------
    path : Path
        The file.
    request : Request
        Choices of reading; only its target ("y" or None) and its schema matter.
    """

    def __init__(self, path: Path, request: Request) -> None:
        """Store the file ``path``; ValueError for a target in ``request`` that it cannot have."""
        if request.target not in (None, "y"):
            raise ValueError(
                f"{path} is a libsvm file, whose only target is the first number of each line; "
                f"received target {request.target!r}. Leave the target out"
            )
        self.path = path
        self._is_known = request.schema is not None
        self.about = About(None, True, np.dtype(np.float64), drops_first=True)

    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        """Yield the rows from a position of the text on, in pieces of about ``piece_bytes``.

        A position is the end of an earlier piece, or 0.
        """
        # Imported here because importing it takes longer than reading most files.
        from sklearn.datasets import load_svmlight_file

        remedy = "; expected lines of 'label index:value index:value ...' with ascending indices"
        # Parsing takes ``LIMITS.copies`` times the memory of the text.
        n_bytes = max(min(piece_bytes, LIMITS.piece_bytes) // LIMITS.copies, 1)
        start = position
        entries = 0
        n_lines = 0
        with open_bytes(self.path) as stream:
            stream.seek(start)
            while text := whole_lines(stream, n_bytes, self.path):
                position += len(text)
                description = f"libsvm file before byte {position:,} of its text"
                # The parser's own message about several labels in a line would be unclear.
                match = _SEVERAL_LABELS.search(text)
                if match is not None:
                    line = n_lines + text.count(b"\n", 0, match.start()) + 1
                    raise ValueError(
                        f"{self.path} is not a readable libsvm file of one target: line {line} has "
                        f"several labels ({match[1].decode()}), which multi-label files have; "
                        "write a file for each label, with 1 or 0 in each line"
                    )
                n_lines += text.count(b"\n")
                with understood(self.path, description, remedy):
                    X, y = load_svmlight_file(io.BytesIO(text), zero_based=True)
                entries += X.nnz
                # Without known columns, one wrong index could ask for 10^9 of them.
                if not self._is_known:
                    sparse_size(self.path, X.shape, entries, X.shape[1])
                if X.shape[0]:
                    yield RowPiece(sp.csr_array(X), y, position)
        if not start and not entries:
            raise ValueError(
                f"{self.path} holds no data; expected lines of 'label index:value ...'"
            )
