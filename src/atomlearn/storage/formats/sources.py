"""Data of a file a piece at a time: row by row, or column by column."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


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
        parts = [piece.X for piece in pieces]
        if len(parts) == 1:
            X = parts[0]
        else:
            X = sp.vstack(parts, format="csr") if self.about.sparse else np.concatenate(parts)
        given = [piece.y for piece in pieces if piece.y is not None]
        return X, np.concatenate(given) if given else self.target()


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

    def __init__(
        self,
        X: Any,
        names: Sequence[str] | None,
        y: NDArray[Any] | None,
        plans: Sequence[Any] = (),
    ) -> None:
        self.y, self.shape = y, (int(X.shape[0]), int(X.shape[1]))
        self._X: Any = sp.csc_array(X) if sp.issparse(X) else X  # type: ignore[call-overload]
        self.about = About(names, bool(sp.issparse(X)), X.dtype, plans=plans)

    def columns(self, start: int, stop: int) -> Any:
        return self._X[:, start:stop]
