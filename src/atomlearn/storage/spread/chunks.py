"""Pieces of a Dask collection: their place in X, and the operations on one piece.

The functions of this module run on the workers, which therefore need this package, too. Nothing
here imports Dask.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core import (
    Array,
    Columns,
    DenseDesign,
    SparseDesign,
    check_shape,
    frame_to_array,
    held_design,
    is_sparse,
    narrowest,
    refuse_not_finite,
)
from atomlearn.storage.spread.rows import HeldRows, Sums, summed

#: A collection cut into chunks: an array (n_row_chunks, n_column_chunks) of Dask Delayed objects;
#: the rows and the columns of the chunks; float32 or float64; the names of columns, or None.
Grid = tuple[NDArray[Any], list[slice], list[slice], np.dtype[Any], list[str] | None]


def names_of_dask(X: Any) -> list[str] | None:
    """Return the column names of a Dask table; None for arrays and names that are no strings."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def grid_of(X: Any) -> Grid:
    """Return the chunks of a two-dimensional dask.array or of a dask.dataframe.

    Lengths that Dask does not know are computed, which computes the data once.
    """
    if hasattr(type(X), "to_dask_array"):
        return _grid_of_frame(X)
    if not hasattr(type(X), "chunks"):
        raise TypeError(
            f"X is a Dask {type(X).__name__}; expected a dask.array or a dask.dataframe, for "
            "example dask.array.from_delayed(X, shape, dtype)"
        )
    check_shape(X.shape, X)
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        X = X.copy()
        X.compute_chunk_sizes()
    if X.dtype.kind not in "biuf":
        raise TypeError(
            f"X must hold numbers, got a dask.array of dtype {X.dtype}; convert it with "
            "X.astype(float) where its entries are numbers"
        )
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else narrowest([X.dtype])
    return _without_empty(X.to_delayed(), X.chunks[0], X.chunks[1], dtype.newbyteorder("="), None)


def _grid_of_frame(X: Any) -> Grid:
    if not hasattr(X, "columns"):
        raise ValueError("X is a Dask series; pass a table, for example X.to_frame()")
    import dask

    # An empty table with the types of the columns; text columns are refused here.
    dtype = frame_to_array(X._meta).dtype
    parts = X.to_delayed()
    lengths = dask.compute(*(dask.delayed(len)(part) for part in parts))
    chunks = np.empty((len(parts), 1), dtype=object)
    chunks[:, 0] = parts
    return _without_empty(chunks, lengths, [len(X.columns)], dtype, names_of_dask(X))


def _without_empty(
    chunks: NDArray[Any], rows: Any, columns: Any, dtype: np.dtype[Any], names: list[str] | None
) -> Grid:
    sizes = [np.array([int(size) for size in axis], dtype=np.int64) for axis in (rows, columns)]
    check_shape(tuple(int(axis.sum()) for axis in sizes), chunks)
    kept = chunks[np.ix_(*(np.flatnonzero(axis) for axis in sizes))]
    ends = [pairwise(accumulate(axis[axis > 0].tolist(), initial=0)) for axis in sizes]
    rows, columns = ([slice(*pair) for pair in axis] for axis in ends)
    return kept, rows, columns, dtype, names


class Chunk:
    """A piece of X on a worker: an array or a SciPy CSC or CSR array, and its design.

    It has a size, which Dask uses to distribute work. Arrays that came over the network may be
    unaligned, and are then copied for the kernels.
    """

    __slots__ = ("design", "held")

    def __init__(self, held: Any) -> None:
        self.held = held
        self.design: DenseDesign | SparseDesign
        if is_sparse(held):
            self.design = SparseDesign(held)
            self.held = self.design.stored()
        else:
            self.held = aligned(held)
            self.design = DenseDesign(self.held)

    def __reduce__(self) -> tuple[type[Chunk], tuple[Any]]:
        return Chunk, (self.held,)

    def __sizeof__(self) -> int:
        if isinstance(self.held, np.ndarray):
            return self.held.nbytes
        return sum(part.nbytes for part in (self.held.data, self.held.indices, self.held.indptr))


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, copied only if its address is not aligned as kernels require."""
    return np.require(array, requirements="A")


def held_chunk(
    piece: Any, dtype: np.dtype[Any], shape: tuple[int, int], row: int, column: int
) -> Chunk:
    """Return a piece as a chunk, after checks: its shape, numbers only, and all of them finite.

    row, column : first row and column of the piece in X.
    """
    given = held_design(piece, check_finite=False)
    if given.shape != shape:
        raise ValueError(
            f"the chunk of X at row {row}, column {column} is a {type(piece).__name__} of shape "
            f"{given.shape}; Dask announced {shape}: rebuild X with the right chunks"
        )
    array: Any = given.stored()
    chunk = Chunk(array.astype(dtype, copy=False))
    refuse_not_finite(chunk.design, first=(row, column))
    return chunk


# --- operations on a worker ---------------------------------------------------------------------


def scores_of(chunk: Chunk, V: Array) -> Array:
    """Return V'X over a chunk, (m, columns)."""
    design = chunk.design
    V = aligned(V)
    if V.shape[1] == 1:
        return design.scores(V[:, 0]).full()[None]
    return np.array([scores.full() for scores in design.scores_many(V)])


def of_design(name: str, chunk: Chunk, *arrays: NDArray[Any]) -> Array:
    """Return the result of a method of a chunk's design."""
    answer: Array = getattr(chunk.design, name)(*map(aligned, arrays))
    return answer


def chunk_columns(chunk: Chunk, columns: Columns) -> Any:
    """Return some columns of a chunk, sparse if the chunk is."""
    block = chunk.design.gather(aligned(columns))
    if block.traits.is_sparse:
        return block.stored()
    return sp.csc_array(block.dense()) if is_sparse(chunk.held) else block.dense()


def rows_of_chunk(chunk: Chunk, rows: Columns) -> Chunk:
    """Return some rows of a chunk."""
    return Chunk(chunk.held[aligned(rows)])


def beside(parts: list[Chunk]) -> Chunk:
    """Return one chunk made of chunks of the same rows."""
    arrays: list[Any] = [part.held for part in parts]
    return Chunk(sp.hstack(arrays, "csc") if any(map(is_sparse, arrays)) else np.hstack(arrays))


def rows_beside(_: Chunk, *parts: Any) -> HeldRows:
    """Return loss, targets and weights of a chunk's rows, created and kept on its worker."""
    return HeldRows(*parts)


def answer(chunks: list[Chunk], rows: list[HeldRows], question: Sums) -> Sums:
    """Return the sum of the answers of several chunks."""
    question = {name: each if name == "ask" else aligned(each) for name, each in question.items()}
    return summed(
        [
            HeldRows(own.loss, aligned(own.y), aligned(own.weight)).answer(chunk.design, question)
            for chunk, own in zip(chunks, rows, strict=True)
        ]
    )
