"""Format: what the package can do with one kind of data file."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
    """Some rows.

    X : dense array, or SciPy CSR array of any width so far; y : their targets or None; position :
    where the source goes on after them (rows or bytes, as the source counts).
    """

    X: Any
    y: NDArray[Any] | None
    position: int


@dataclass(slots=True)
class About:
    """What a source knows of its columns.

    names : of the columns, None without; sparse : whether its pieces are; dtype : of its values;
    drops_first : columns are counted from 1 (libsvm), so an empty column 0 is no column; plans :
    what each column of the file is (``ColumnPlan``), where that is known.
    """

    names: Sequence[str] | None
    sparse: bool
    dtype: np.dtype[Any]
    drops_first: bool = False
    plans: Sequence[Any] = ()


class Source(ABC):
    """Data of a file.

    y : the target, where it is known at once; packed : whether columns come as genotypes of two
    bits.
    """

    about: About
    y: NDArray[Any] | None = None
    packed: ClassVar[bool] = False

    def target(self) -> NDArray[Any] | None:
        """Return the target; None where there is none, or where pieces of rows have it."""
        return self.y

    @abstractmethod
    def whole(self) -> tuple[Any, NDArray[Any] | None]:
        """Return all the data as one matrix in memory, and the target."""


class RowSource(Source):
    """Data that is stored row after row."""

    @abstractmethod
    def pieces(self, position: int, piece_bytes: int) -> Iterator[RowPiece]:
        """Yield the rows from a position on, in pieces of about so many bytes in memory."""

    def whole(self) -> tuple[Any, NDArray[Any] | None]:
        pieces = list(self.pieces(0, sys.maxsize))
        X = stacked([piece.X for piece in pieces], "csr")
        given = [piece.y for piece in pieces if piece.y is not None]
        return X, np.concatenate(given) if given else self.target()


def stacked(parts: list[Any], form: Literal["csr", "csc"]) -> Any:
    """Return rows below one another; sparse ones as wide as the widest, in ``csr`` or ``csc``."""
    first = parts[0]
    if not is_sparse(first):
        return first if len(parts) == 1 else np.concatenate(parts)
    width = max(X.shape[1] for X in parts)
    for X in parts:
        X.resize(X.shape[0], width)
    return first.asformat(form) if len(parts) == 1 else sp.vstack(parts, format=form)


class ColumnSource(Source):
    """Data of which columns can be had."""

    shape: tuple[int, int]

    @abstractmethod
    def columns(self, start: int, stop: int) -> Any:
        """Return columns as an array, as a SciPy CSC array, or as packed genotypes (uint8)."""

    def widths(self, piece_bytes: int) -> NDArray[np.int64]:
        """Return where to cut the columns so that a piece takes about so many bytes."""
        width = max(1, piece_bytes // (self.shape[0] * max(self.about.dtype.itemsize, 1)))
        return np.append(np.arange(0, self.shape[1], width, dtype=np.int64), self.shape[1])

    def whole(self) -> tuple[Any, NDArray[Any] | None]:
        return self.columns(0, self.shape[1]), self.target()


class MatrixColumns(ColumnSource):
    """A matrix in memory, dense or sparse: the source of a format that only reads tables."""

    def __init__(self, X: Any, schema: Schema, y: NDArray[Any] | None, dtype: Any = None) -> None:
        self.y, self.shape = y, (int(X.shape[0]), int(X.shape[1]))
        self._X: Any = sp.csc_array(X) if sp.issparse(X) else X  # type: ignore[call-overload]
        self.about = About(
            schema.names, bool(sp.issparse(X)), dtype or X.dtype, plans=schema.columns
        )

    def columns(self, start: int, stop: int) -> Any:
        return self._X[:, start:stop]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of data file: how it is recognized, and the ways to get at its data.

    A format needs ``read``, ``stream`` or ``cells``; the others follow from it. All consumers (the
    readers, ``convert``, the command line, estimators that take a path) go through ``table``,
    ``source``, ``open`` and ``names``, and know no format by name.

    Attributes
    ----------
    name : str
        As messages call it.
    suffixes : tuple of str
        Endings of its files, those of compression left out.
    read : (path, Request) -> DataTable, optional
        Reads the whole file. The columns of the schema in the request are those that a model
        knows; a reader that cannot use it ignores it. ``table`` refuses what is not finite; that
        a column which is asked for is there, says ``require_name``.
    stream : (path, Request) -> RowSource or ColumnSource, optional
        Gives the data a piece at a time, for files larger than memory.
    open : path -> Design or array, optional
        What an estimator uses that was given the path in place of data; None: it refuses.
    names : path -> list of str or None, optional
        The names of the columns, without their data; goes with ``open``.
    cells : (path, TextForm, sheet) -> TableFile, optional
        Opens a table whose columns are to be understood first, see ``intake``.
    rows : path -> Observations, optional
        What the file says of its rows besides X.
    recognizes : (suffix, first line) -> bool, optional
        Whether a file of no known ending is of this kind.
    in_place : bool
        Whether tables of this kind hold a ``Design`` that reads the file as it goes.

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
        """Return the data of the file as a table; its X is a Design where the file is in place."""
        read = self._collected if self.read is None else self.read
        table = _tidy(read(path, request), path, request.missing)
        if table.y is not None and table.y.size != table.X.shape[0]:
            raise ValueError(f"{path} has {table.X.shape[0]} samples but {table.y.size} targets")
        return table

    def _collected(self, path: Path, request: Request) -> DataTable:
        """Return the table of a format that gives a stream only."""
        assert self.stream is not None
        source = self.stream(path, request)
        X, y = source.whole()
        names = None if source.about.names is None else tuple(source.about.names)
        target = request.target if y is None else request.target or "y"
        return DataTable(X, y, Schema(X.shape[1], names), target, str(path))

    def source(self, path: Path, request: Request) -> RowSource | ColumnSource:
        """Return the data of the file a piece at a time; of tables, ``table_columns`` has them."""
        if self.stream is not None:
            return self.stream(path, request)
        table = self.table(path, request)
        return MatrixColumns(table.X, table.schema, table.y)


def _tidy(table: DataTable, path: Path, missing: bool) -> DataTable:
    """Return what a reader read as finite floats and tidy targets: no reader need see to that.

    A design that reads the file as it goes checks what it reads.
    """
    if isinstance(table.X, Design):
        return table
    X = finite_matrix(table.X, path, missing)
    y = table.y
    return replace(
        table, X=X, y=None if y is None else tidy_target(y, f"the target of {path}", missing)
    )
