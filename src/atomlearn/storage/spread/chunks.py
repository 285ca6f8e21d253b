"""Chunks of a Dask collection: their rows and columns in X, and the operations on one chunk.

The functions of this module run on the workers, which therefore need this package, too. Nothing
here imports Dask.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn._support import frame_to_array, narrowest
from atomlearn.core import (
    Array,
    Columns,
    DenseDesign,
    SparseDesign,
    as_design,
    check_shape,
    is_sparse,
    refuse_not_finite,
)
from atomlearn.storage.spread.rows import HeldRows, Sums, summed

#: A collection divided into chunks, as five parts: an array (n_row_chunks, n_column_chunks) of Dask
#: Delayed objects, the rows of each row of chunks, the columns of each column of chunks, the type
#: (float32 or float64), and the names of the columns or None.
Grid = tuple[NDArray[Any], list[slice], list[slice], np.dtype[Any], list[str] | None]


def names_of_dask(X: Any) -> list[str] | None:
    """Return the names of the columns of X, a Dask table; None for arrays.

    The result is also None if a name is not a string.
    """
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def grid_of(X: Any) -> Grid:
    """Return the chunks of X, a two-dimensional dask.array or a dask.dataframe, as a ``Grid``.

    Each chunk is a task (a Dask Delayed). Chunk sizes that Dask does not know are computed, which
    computes the data once.
    """
    if hasattr(type(X), "to_dask_array"):
        return _grid_of_frame(X)
    if not hasattr(type(X), "chunks"):
        raise TypeError(
            f"X is a Dask {type(X).__name__}; expected a dask.array or a dask.dataframe, for "
            "example dask.array.from_delayed(X, shape, dtype)"
        )
    check_shape(X.shape, X)
    # Dask marks unknown sizes by NaN; the array of the caller is not changed.
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
    """Return the partitions of a dask.dataframe X as a ``Grid`` with one column of chunks.

    Partitions without rows are left out. The numbers of rows are computed, which computes the data
    once.
    """
    if not hasattr(X, "columns"):
        raise ValueError("X is a Dask series; pass a table, for example X.to_frame()")
    import dask

    # ``_meta`` is an empty table with the column types; the conversion refuses text columns.
    dtype = frame_to_array(X._meta).dtype
    partitions = X.to_delayed()
    lengths = dask.compute(*(dask.delayed(len)(partition) for partition in partitions))
    chunks = np.empty((len(partitions), 1), dtype=object)
    chunks[:, 0] = partitions
    return _without_empty(chunks, lengths, [len(X.columns)], dtype, names_of_dask(X))


def _without_empty(
    chunks: NDArray[Any], rows: Any, columns: Any, dtype: np.dtype[Any], names: list[str] | None
) -> Grid:
    """Return the ``Grid`` of the chunks that have any rows and columns.

    ``chunks`` is the array (n_row_chunks, n_column_chunks) of tasks. ``rows`` and ``columns`` are
    the numbers of rows and columns of the chunks along each axis. ``dtype`` and ``names`` are the
    type of X and the names of its columns.
    """
    sizes = [np.array([int(size) for size in axis], dtype=np.int64) for axis in (rows, columns)]
    check_shape(tuple(int(axis.sum()) for axis in sizes), chunks)
    nonempty = chunks[np.ix_(*(np.flatnonzero(axis) for axis in sizes))]
    # The ranges (start, stop) of the chunks along each axis, as slices.
    ranges = [pairwise(accumulate(axis[axis > 0].tolist(), initial=0)) for axis in sizes]
    rows, columns = ([slice(*pair) for pair in axis] for axis in ranges)
    return nonempty, rows, columns, dtype, names


class Chunk:
    """A submatrix of X on a worker, dense or SciPy CSC/CSR, together with its design.

    The design computes products with the submatrix. Arrays received over the network may be
    unaligned in memory, and are then copied, because the compiled kernels need aligned arrays.

    Parameters
    ----------
    held : array or sparse array
        The entries.
    """

    __slots__ = ("design", "held")

    def __init__(self, held: Any) -> None:
        """Store the entries ``held``, dense or sparse, and make their design."""
        self.held = held
        self.design: DenseDesign | SparseDesign
        if is_sparse(held):
            self.design = SparseDesign(held)
            self.held = self.design.stored()
        else:
            self.held = aligned(held)
            self.design = DenseDesign(self.held)

    def __reduce__(self) -> tuple[type[Chunk], tuple[Any]]:
        """Return how to make the chunk again: a pickle has the entries only."""
        return Chunk, (self.held,)

    def __sizeof__(self) -> int:
        """Return the number of bytes, by which Dask distributes work."""
        if isinstance(self.held, np.ndarray):
            return self.held.nbytes
        return sum(part.nbytes for part in (self.held.data, self.held.indices, self.held.indptr))


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, copied only if its memory address is not aligned as kernels require."""
    return np.require(array, requirements="A")


def held_chunk(
    piece: Any, dtype: np.dtype[Any], shape: tuple[int, int], row: int, column: int
) -> Chunk:
    """Return a ``Chunk`` after checks that it has the declared shape and only finite numbers.

    Parameters
    ----------
    piece : array, sparse array or table
        The data that Dask computed.
    dtype : dtype
        Type of the chunk.
    shape : (int, int)
        Shape that Dask declared.
    row, column : int
        First row and column of the chunk in X, for error messages.
    """
    design = as_design(piece, check_finite=False)
    if design.shape != shape:
        raise ValueError(
            f"the chunk of X at row {row}, column {column} is a {type(piece).__name__} of shape "
            f"{design.shape}; Dask announced {shape}: rebuild X with the right chunks"
        )
    array: Any = design.stored()
    chunk = Chunk(array.astype(dtype, copy=False))
    refuse_not_finite(chunk.design, first=(row, column))
    return chunk


# --- operations on a worker ---------------------------------------------------------------------


def scores_of(chunk: Chunk, V: Array) -> Array:
    """Return V'X over a chunk, (m, columns of chunk), for V (rows of chunk, m)."""
    design = chunk.design
    V = aligned(V)
    if V.shape[1] == 1:
        return design.scores(V[:, 0]).full()[None]
    return np.array([scores.full() for scores in design.scores_many(V)])


def of_design(name: str, chunk: Chunk, *arrays: NDArray[Any]) -> Array:
    """Return ``chunk.design.name(*arrays)``, the result of the method that ``name`` names."""
    result: Array = getattr(chunk.design, name)(*map(aligned, arrays))
    return result


def chunk_columns(chunk: Chunk, columns: Columns) -> Any:
    """Return the columns of a chunk with these numbers, as a sparse array if the chunk is sparse.

    Columns are counted within the chunk.
    """
    block = chunk.design.gather(aligned(columns))
    if block.traits.is_sparse:
        return block.stored()
    return sp.csc_array(block.dense()) if is_sparse(chunk.held) else block.dense()


def rows_of_chunk(chunk: Chunk, rows: Columns) -> Chunk:
    """Return the chunk of these rows, counted within ``chunk``."""
    return Chunk(chunk.held[aligned(rows)])


def beside(chunks: list[Chunk]) -> Chunk:
    """Return one chunk with the columns of all ``chunks``, which have the same rows.

    It is sparse if any of them is.
    """
    arrays: list[Any] = [chunk.held for chunk in chunks]
    return Chunk(sp.hstack(arrays, "csc") if any(map(is_sparse, arrays)) else np.hstack(arrays))


def rows_beside(_: Chunk, *parts: Any) -> HeldRows:
    """Return ``HeldRows(loss, targets, weights)`` of a chunk's rows, for these three ``parts``.

    The chunk is an argument only so that Dask runs this on the worker that has the chunk.
    """
    return HeldRows(*parts)


def answer(chunks: list[Chunk], rows: list[HeldRows], question: Sums) -> Sums:
    """Return the sum of the answers of several chunks to one request.

    ``rows`` has the loss, targets and weights of the rows of each chunk. ``question`` is the
    request; ``HeldRows.answer`` describes it and the answer.
    """
    question = {
        name: entry if name == "ask" else aligned(entry) for name, entry in question.items()
    }
    return summed(
        [
            HeldRows(held.loss, aligned(held.y), aligned(held.weight)).answer(
                chunk.design, question
            )
            for chunk, held in zip(chunks, rows, strict=True)
        ]
    )
