"""Blocks: a few columns in memory, dense or sparse, products in float64; masters work on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.data.compressed import take_compressed, weighted_squares
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns, Deadline, Rows


def prefers_dense(n_samples: int, n_columns: int, nonzeros: int) -> bool:
    """Return True where columns with this many non-zeros belong in a dense array."""
    return nonzeros >= LIMITS.dense_from * n_samples * n_columns


def stored_entries(block: Block) -> int:
    """Return how many entries a block has, all of them unless it is from sparse data."""
    return block.shape[0] * block.shape[1] if block.nonzeros is None else block.nonzeros


def check_same_rows(first: Block, second: Block) -> None:
    """Raise where columns of one block cannot follow those of the other."""
    if first.shape[0] != second.shape[0]:
        raise ValueError(
            f"cannot append columns of {second.shape[0]} rows to a block of {first.shape[0]} "
            "rows; both must come from the same samples"
        )


class _Room:
    """A Fortran array that successive blocks share; its first ``used`` columns are taken."""

    __slots__ = ("array", "used")

    def __init__(self, array: NDArray[Any], used: int) -> None:
        self.array = array
        self.used = used


class DenseBlock(Block):
    """A as a Fortran array with spare room on the right; float32 data stay float32, sums do not.

    ``append`` writes into the spare room where this block is the room's latest owner, and copies
    otherwise, so a block never changes. ``nonzeros`` is set where the columns come from sparse
    data: such a block becomes sparse again once sparse columns outnumber the full ones.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import DenseBlock
    >>> A = DenseBlock(np.array([[1.0], [2.0]])).append(DenseBlock(np.array([[0.0], [1.0]])))
    >>> A.gram(np.ones(2))
    array([[5., 2.],
           [2., 1.]])
    """

    __slots__ = ("_array", "_room", "nonzeros")

    keeps_gram = True

    def __init__(self, array: NDArray[Any] | _Room, nonzeros: int | None = None) -> None:
        if not isinstance(array, _Room):
            single = np.asarray(array).dtype == np.float32
            array = np.asarray(array, dtype=np.float32 if single else np.float64, order="F")
            array = _Room(array, array.shape[1])
        self._room = room = array
        self._array = room.array[:, : room.used]
        self._array.flags.writeable = False
        self.nonzeros = nonzeros

    def __reduce__(self) -> tuple[type[DenseBlock], tuple[NDArray[Any], int | None]]:
        return DenseBlock, (self._array, self.nonzeros)

    @property
    def shape(self) -> tuple[int, int]:
        return self._array.shape[0], self._array.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._array.dtype

    def dense(self) -> NDArray[Any]:
        return self._array

    def stored(self) -> NDArray[Any]:
        """Return A itself, read-only use."""
        return self._array

    def dot(self, weights: Array) -> Array:
        return _kernels.predict_dense(self._array, weights)

    def transpose_dot(self, v: Array) -> Array:
        return _kernels.scores_dense(self._array, v)

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S for curvature >= 0; rows of curvature 0 are skipped."""
        return self._weighted_gram(curvature, positions, None)

    def centered_gram(self, curvature: Array, means: Array) -> Array:
        """Return (A - 1 means')' diag(curvature) (A - 1 means'), curvature >= 0."""
        return self._weighted_gram(curvature, None, means)

    def _weighted_gram(
        self, curvature: Array, positions: Columns | None, means: Array | None
    ) -> Array:
        rows = np.flatnonzero(curvature)
        few = rows if 4 * rows.size <= 3 * curvature.size else None
        root = np.sqrt(curvature if few is None else curvature[few])

        def scaled(some: slice) -> Array:
            if few is not None:
                at = np.arange(self.shape[1]) if positions is None else positions
                part = _kernels.gather_dense(self._array, at, few[some])
            elif positions is None:
                part = self._array[some].astype(np.float64)
            else:
                part = _kernels.gather_dense(self._array[some], positions)
            if means is not None:
                part -= means
            part *= root[some, None]
            return part

        def product(rows: slice) -> Array:
            # A few rows at a time: fresh memory for all of them takes longer than the product.
            total = np.zeros((size, size))
            for piece in LIMITS.pieces(rows.stop - rows.start, size):
                deadline.check()
                part = scaled(slice(rows.start + piece.start, rows.start + piece.stop))
                # NumPy sees an array with its own transpose and calls BLAS's syrk: half the work.
                total += part.T @ part
            return total

        size = self.shape[1] if positions is None else positions.size
        deadline = Deadline.current()
        return _kernels.sum_of_pieces(product, root.size, 0.5 * root.size * size * size)

    def outer(self, diagonal: Array, positions: Columns | None = None) -> Array:
        """Return A_S diag(diagonal) A_S', a bounded number of columns at a time."""
        n_samples = self.shape[0]
        keep = np.flatnonzero(diagonal)
        positions = keep if positions is None else positions[keep]
        diagonal = diagonal[keep]
        result = np.zeros((n_samples, n_samples))
        for sign in (1.0, -1.0):
            mine = np.flatnonzero(sign * diagonal > 0)
            if mine.size:
                result += sign * self._outer(np.abs(diagonal[mine]), positions[mine])
        return result

    def _outer(self, diagonal: Array, positions: Columns) -> Array:
        n_samples, deadline = self.shape[0], Deadline.current()

        def product(columns: slice) -> Array:
            total = np.zeros((n_samples, n_samples))
            for piece in LIMITS.pieces(columns.stop - columns.start, n_samples):
                deadline.check()
                chosen = slice(columns.start + piece.start, columns.start + piece.stop)
                scaled = _kernels.gather_dense(self._array, positions[chosen])
                scaled *= np.sqrt(diagonal[chosen])
                total += scaled @ scaled.T
            return total

        operations = 0.5 * n_samples * n_samples * positions.size
        return _kernels.sum_of_pieces(product, positions.size, operations)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        return _kernels.scores_dense(self._array, curvature, squared=True)

    def take(self, positions: Columns) -> DenseBlock:
        n_columns = self.shape[1]
        if positions.size == n_columns and (positions == np.arange(n_columns)).all():
            return self
        taken = _kernels.gather_dense(self._array, positions, None, self.dtype)
        return DenseBlock(taken, None if self.nonzeros is None else int(np.count_nonzero(taken)))

    def with_rows(self, rows: Rows) -> DenseBlock:
        """Return the block of these rows, in their order, repeated rows included."""
        everything = np.arange(self.shape[1])
        taken = _kernels.gather_dense(self._array, everything, rows, self.dtype)
        return DenseBlock(taken, None if self.nonzeros is None else int(np.count_nonzero(taken)))

    def rescaled(self, factors: Array) -> DenseBlock:
        """Return the block with column j multiplied by factors[j]."""
        return DenseBlock(self._array * factors, self.nonzeros)

    def append(self, other: Block) -> Block:
        check_same_rows(self, other)
        n_samples, size = self.shape
        total = size + other.shape[1]
        nonzeros = None
        if not size and isinstance(other, DenseBlock) and other.nonzeros is None:
            return other
        if self.nonzeros is not None or other.nonzeros is not None:
            nonzeros = stored_entries(self) + stored_entries(other)
            if not prefers_dense(n_samples, total, nonzeros):
                return SparseBlock.of(self._array).append(other)
        room, columns = self._room, other.dense()
        dtype = np.result_type(self.dtype, columns.dtype) if size else columns.dtype
        if room.used != size or room.array.shape[1] < total or room.array.dtype != dtype:
            # Spare room costs address space, not memory, until it is written to.
            capacity = max(total, size + size // 2 + 8)
            room = _Room(np.empty((n_samples, capacity), dtype=dtype, order="F"), size)
            room.array[:, :size] = self._array
        room.array[:, size:total] = columns
        room.used = total
        return DenseBlock(room, nonzeros)


class SparseBlock(Block):
    """A in compressed columns: float64 data, sorted or unsorted row indices, no duplicates.

    Columns that turn out full make it a dense one. Appending copies the block, which is less than
    a pass over X reads.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import SparseBlock
    >>> A = SparseBlock.of(np.array([[1.0, 0.0], [0.0, 4.0]]))
    >>> A.dot(np.array([1.0, 1.0])), A.nonzeros
    (array([1., 4.]), 2)
    """

    __slots__ = ("_data", "_indices", "_indptr", "_n_samples", "nonzeros")

    keeps_gram = True

    def __init__(
        self,
        data: Array,
        indices: NDArray[Any],
        indptr: NDArray[Any],
        n_samples: int,
    ) -> None:
        self._data, self._indices = data, indices
        self._indptr = indptr.astype(indices.dtype, copy=False)
        self._n_samples = n_samples
        self.nonzeros: int = data.shape[0]

    @classmethod
    def of(cls, X: Any) -> SparseBlock:
        """Return the non-zeros of an array, or the entries of a sparse one, as a block."""
        X = sp.csc_array(X)
        data = X.data.astype(np.float64, copy=False)
        return cls(data, X.indices, X.indptr, X.shape[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseBlock, (*self._parts, self._n_samples)

    @property
    def _parts(self) -> tuple[Array, NDArray[Any], NDArray[Any]]:
        return self._data, self._indices, self._indptr

    @property
    def shape(self) -> tuple[int, int]:
        return self._n_samples, self._indptr.shape[0] - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._data.dtype

    def stored_sparse(self) -> sp.csc_array:
        """Return A as a SciPy array that shares this block's memory; read-only use."""
        return sp.csc_array(self._parts, shape=self.shape, copy=False)

    def dense(self) -> Array:
        return self.stored_sparse().toarray(order="F")

    def dot(self, weights: Array) -> Array:
        return _kernels.sparse_sums(*self._parts, weights, self._n_samples)

    def transpose_dot(self, v: Array) -> Array:
        return _kernels.sparse_dots(*self._parts, v)

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S: samples are the vectors of the sum."""
        chosen = self if positions is None else self.take(positions)
        return weighted_squares(chosen.stored_sparse().tocsr(), curvature)

    def coupled_gram(self, curvature: Array, coupling: Any) -> Array:
        """Return A'(diag(c) - K K')A; from sparse products where K is stored sparse too."""
        if not sp.issparse(coupling):
            return super().coupled_gram(curvature, coupling)
        stored: Any = coupling
        pulled = (stored.T @ self.stored_sparse()).tocsr()
        whole = weighted_squares(pulled, np.ones(pulled.shape[0]))
        return np.asarray(self.gram(curvature) - whole)

    def outer(self, diagonal: Array, positions: Columns | None = None) -> Array:
        """Return A_S diag(diagonal) A_S': columns are the vectors of the sum."""
        chosen = self if positions is None else self.take(positions)
        return weighted_squares(chosen.stored_sparse().T, diagonal)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        weights = np.ones(self._n_samples) if curvature is None else curvature
        return _kernels.sparse_dots(*self._parts, weights, squared=True)

    def take(self, positions: Columns) -> SparseBlock:
        n_columns = self.shape[1]
        if positions.size == n_columns and (positions == np.arange(n_columns)).all():
            return self
        return SparseBlock(*take_compressed(*self._parts, positions), self._n_samples)

    def append(self, other: Block) -> Block:
        check_same_rows(self, other)
        total = self.shape[1] + other.shape[1]
        if prefers_dense(self._n_samples, total, self.nonzeros + stored_entries(other)):
            return DenseBlock(self.dense(), self.nonzeros).append(other)
        more = other.stored_sparse()
        more = sp.csc_array(other.dense()) if more is None else more
        return SparseBlock.of(sp.hstack([self.stored_sparse(), more], format="csc"))
