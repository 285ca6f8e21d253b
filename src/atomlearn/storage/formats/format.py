"""Format: the operations that the package supports for one kind of data file."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core import Design, is_sparse
from atomlearn.storage.formats.table import (
    DataTable,
    Observations,
    Request,
    Schema,
    finite_matrix,
    tidy_target,
)


@dataclass(frozen=True, slots=True)
class RowPiece:
    """Some consecutive rows of a file.

    Attributes
    ----------
    X : array or CSR array
        The rows. The width of a CSR array is that of the rows read so far.
    y : array, optional
        Their targets.
    position : int
        Position in the source after these rows, in rows or bytes, as the source counts.
    """

    X: Any
    y: NDArray[Any] | None
    position: int


@dataclass(slots=True)
class About:
    """Description of the columns of a source.

    Attributes
    ----------
    names : sequence of str, optional
        Names of the columns.
    sparse : bool
        Whether pieces are sparse.
    dtype : dtype
        Type of the values.
    drops_first : bool
        Whether columns are counted from 1 (libsvm), so that an empty column 0 is left out.
    plans : sequence of ColumnPlan
        How each column of a table is encoded as columns of X, if it is known.
    symbols : mapping
        Gene symbols of columns, by the names of the columns.
    """

    names: Sequence[str] | None
    sparse: bool
    dtype: np.dtype[Any]
    drops_first: bool = False
    plans: Sequence[Any] = ()
    symbols: Mapping[str, str] = field(default_factory=dict)


class Source(ABC):
    """Data of a file.

    Attributes
    ----------
    about : About
        Description of the columns.
    y : array, optional
        The target, if it is known before the rows are read.
    packed : bool
        Whether columns are genotypes of two bits.
    """

    about: About
    y: NDArray[Any] | None = None
    packed: ClassVar[bool] = False

    def target(self) -> NDArray[Any] | None:
        """Return the target; None if the file has none, or if the pieces of rows contain it."""
        return self.y

    @abstractmethod
    def whole(self) -> tuple[Any, NDArray[Any] | None]:
        """Return all the data as one matrix in memory, and the target."""


class RowSource(Source):
    """Data that is stored row after row."""

    @abstractmethod
    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        """Yield the rows from a position on, in pieces of about ``piece_bytes`` in memory.

        ``position`` is 0, or the position of an earlier piece, after which reading resumes.
        """

    def whole(self) -> tuple[Any, NDArray[Any] | None]:
        """Return all rows of X, and the target if there is one."""
        pieces = list(self.pieces(0, sys.maxsize))
        X = stacked([piece.X for piece in pieces], "csr")
        targets = [piece.y for piece in pieces if piece.y is not None]
        return X, np.concatenate(targets) if targets else self.target()


def stacked(parts: list[Any], form: Literal["csr", "csc"]) -> Any:
    """Return the matrices ``parts`` stacked vertically, in the layout ``form`` if they are sparse.

    Sparse ones are first padded to the width of the widest, because a sparse file may not say its
    number of columns.
    """
    first = parts[0]
    if not is_sparse(first):
        return first if len(parts) == 1 else np.concatenate(parts)
    width = max(X.shape[1] for X in parts)
    for X in parts:
        X.resize(X.shape[0], width)
    return first.asformat(form) if len(parts) == 1 else sp.vstack(parts, format=form)


class ColumnSource(Source):
    """Data that is stored column after column.

    Attributes
    ----------
    shape : (int, int)
        (n_samples, n_features).
    """

    shape: tuple[int, int]

    @abstractmethod
    def columns(self, start: int, stop: int) -> Any:
        """Return columns start, ..., stop - 1: an array, CSC array, or packed genotypes (uint8)."""

    def widths(self, piece_bytes: int) -> NDArray[np.int64]:
        """Return the boundaries of groups of columns that take about ``piece_bytes`` each."""
        width = max(1, piece_bytes // (self.shape[0] * max(self.about.dtype.itemsize, 1)))
        return np.append(np.arange(0, self.shape[1], width, dtype=np.int64), self.shape[1])

    def whole(self) -> tuple[Any, NDArray[Any] | None]:
        """Return all columns of X, and the target if there is one."""
        return self.columns(0, self.shape[1]), self.target()


class MatrixColumns(ColumnSource):
    """A matrix in memory, dense or sparse, as a source of columns.

    Parameters
    ----------
    X : array or sparse matrix (n_samples, n_features)
        The matrix.
    schema : Schema
        Description of its columns.
    y : array, optional
        The target.
    dtype : dtype, optional
        Type of the values to report; by default that of X.
    """

    def __init__(self, X: Any, schema: Schema, y: NDArray[Any] | None, dtype: Any = None) -> None:
        """Store the matrix X, its ``schema`` (description of columns), and the target y.

        ``dtype`` is the type of the values to report; by default it is that of X.
        """
        self.y, self.shape = y, (int(X.shape[0]), int(X.shape[1]))
        self._X: Any = sp.csc_array(X) if sp.issparse(X) else X  # type: ignore[call-overload]
        self.about = About(
            schema.names,
            bool(sp.issparse(X)),
            dtype or X.dtype,
            plans=schema.columns,
            symbols=schema.symbols,
        )

    def columns(self, start: int, stop: int) -> Any:
        """Return columns ``start``, ..., ``stop`` - 1."""
        return self._X[:, start:stop]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of data file: how it is recognized, and how its data are read.

    A format needs ``read``, ``stream`` or ``cells``. All users of files (readers, ``convert``, the
    command line, estimators that accept a path) call ``table``, ``source``, ``open`` and ``names``,
    and none of them knows a format by name.

    Attributes
    ----------
    name : str
        Name in messages.
    suffixes : tuple of str
        Endings of its files, without those of compressions.
    read : (path, Request) -> DataTable, optional
        Reads the whole file. The schema in the request lists the columns that a model knows; a
        reader may ignore it. The method ``table`` refuses values that are not finite, so that a
        reader need not.
    stream : (path, Request) -> RowSource or ColumnSource, optional
        Reads the data in pieces, for files larger than memory.
    open : path -> Design or array, optional
        Called by an estimator that receives the path in place of X; None: the estimator refuses.
    names : path -> list of str or None, optional
        The names of the columns, without their data; used together with ``open``.
    cells : (path, TextForm, sheet) -> TableFile, optional
        Opens a table of cells, whose columns have to be interpreted first (``intake``).
    rows : path -> Observations, optional
        Names and columns of the rows in addition to X.
    recognizes : (suffix, first line) -> bool, optional
        Whether a file with an unknown ending has this format.
    in_place : bool
        Whether X of its tables is a ``Design`` that reads the file in every pass.

    Examples
    --------
    >>> from atomlearn.storage.intake.registry import FORMATS
    >>> [form.name for form in FORMATS if ".csv" in form.suffixes]
    ['delimited']
    """

    name: str
    suffixes: tuple[str, ...] = ()
    read: Callable[[Path, Request], DataTable] | None = None
    stream: Callable[[Path, Request], RowSource | ColumnSource] | None = None
    open: Callable[[Path], Any] | None = None
    names: Callable[[Path], list[str] | None] | None = None
    cells: Callable[[Path, Any, str | None], Any] | None = None
    rows: Callable[[Path], Observations] | None = None
    recognizes: Callable[[str, str], bool] | None = None
    in_place: bool = False

    def table(self, path: Path, request: Request) -> DataTable:
        """Return the data of the file, read as the ``request`` says, as a table.

        If ``in_place``, its X is a Design, which reads the file again in every pass.
        """
        read = self._collected if self.read is None else self.read
        table = _tidy(read(path, request), path, request.missing)
        if table.y is not None and table.y.size != table.X.shape[0]:
            raise ValueError(f"{path} has {table.X.shape[0]} samples but {table.y.size} targets")
        return table

    def _collected(self, path: Path, request: Request) -> DataTable:
        """Return all data of a file as a table, for a format that has only a stream.

        ``path`` and ``request`` are those of ``table``; all pieces of the stream are joined.
        """
        assert self.stream is not None
        source = self.stream(path, request)
        X, y = source.whole()
        names = None if source.about.names is None else tuple(source.about.names)
        # A target that nobody named is called "y".
        target = request.target if y is None else request.target or "y"
        return DataTable(X, y, Schema(X.shape[1], names), target, str(path))

    def source(self, path: Path, request: Request) -> RowSource | ColumnSource:
        """Return the data of the file, read as the ``request`` says, as a source of pieces.

        Without a stream, the file is read whole. For formats with ``cells``, call ``table_columns``
        instead.
        """
        if self.stream is not None:
            return self.stream(path, request)
        table = self.table(path, request)
        return MatrixColumns(table.X, table.schema, table.y)


def _tidy(table: DataTable, path: Path, missing: bool) -> DataTable:
    """Return the table with X as finite floats, and with a target of numbers or strings.

    ``missing`` allows NaN. ``path`` is for messages. A table whose X is a Design is returned
    unchanged, because a Design checks values when it reads them.
    """
    if isinstance(table.X, Design):
        return table
    X = finite_matrix(table.X, path, missing)
    y = table.y
    return replace(
        table, X=X, y=None if y is None else tidy_target(y, f"the target of {path}", missing)
    )
