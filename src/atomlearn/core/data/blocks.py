"""Blocks: a few columns in memory, dense or sparse, whose weights are fitted; float64 products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn._support import OwnParameters
from atomlearn.core.data.compressed import take_compressed, weighted_squares
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns, Deadline, Scores, Traits
from atomlearn.core.interfaces.scores import ArrayScores


def check_same_rows(first: Block, second: Block) -> None:
    """Raise ValueError unless the blocks ``first`` and ``second`` have as many rows."""
    if first.shape[0] != second.shape[0]:
        raise ValueError(
            f"cannot append columns of {second.shape[0]} rows to a block of {first.shape[0]} "
            "rows; both must come from the same samples"
        )


@dataclass(slots=True)
class _Storage:
    """A Fortran array with spare columns that successive blocks share.

    array : (n_samples, capacity). used : the number of its first columns that are filled.
    """

    array: NDArray[Any]
    used: int


class DenseBlock(OwnParameters, Block):
    """A few columns A of X as a dense array; float32 data are kept, but sums are float64.

    array : (n_samples, n_columns), made a Fortran array; it may have spare columns.

    ``append`` writes into the spare columns if no other block has used them, and copies the array
    otherwise, so that a block never changes.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.interfaces import DenseBlock
    >>> A = DenseBlock(np.array([[1.0], [2.0]])).append(DenseBlock(np.array([[0.0], [1.0]])))
    >>> A.gram(np.ones(2))
    array([[5., 2.],
           [2., 1.]])
    """

    traits = Traits(keeps_gram=True)

    def __init__(self, array: NDArray[Any], storage: _Storage | None = None) -> None:
        """Store the array, or the first columns of ``storage``, which blocks may share."""
        if storage is None:
            is_float32 = np.asarray(array).dtype == np.float32
            array = np.asarray(array, dtype=np.float32 if is_float32 else np.float64, order="F")
            storage = _Storage(array, array.shape[1])
        self._storage = storage
        self._array = storage.array[:, : storage.used]
        self._array.flags.writeable = False
        self.shape = self._array.shape[0], self._array.shape[1]
        self.dtype = self._array.dtype

    def __reduce__(self) -> tuple[type[DenseBlock], tuple[NDArray[Any]]]:
        """Return the recipe of a pickle: the columns, without the spare ones."""
        return DenseBlock, (self._array,)

    def dense(self) -> NDArray[Any]:
        """Return the block as a dense array (n_samples, n_columns)."""
        return self._array

    def stored(self) -> NDArray[Any]:
        """Return A itself, which must not be modified."""
        return self._array

    def predict(self, weights: Array) -> Array:
        """Return A w, (n_samples,), for w = ``weights`` and the columns A of the block."""
        return _kernels.predict_dense(self._array, weights)

    def scores(self, v: Array) -> Scores:
        """Return A'v for v (n_samples,) and the columns A of the block."""
        return ArrayScores(_kernels.scores_dense(self._array, v))

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return A'v for each column v of V (n_samples, m), by one product."""
        return [ArrayScores(z) for z in _kernels.many_dense(self._array, V)]

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S, S = ``positions`` (None: all columns).

        curvature : (n_samples,), >= 0; rows of curvature 0 are skipped.
        """
        return self._weighted_gram(curvature, positions, None)

    def centered_gram(self, curvature: Array, means: Array) -> Array:
        """Return (A - 1 means')' diag(curvature) (A - 1 means'), for curvature >= 0.

        curvature : (n_samples,); means : (n_columns,), which are subtracted from the columns.
        """
        return self._weighted_gram(curvature, None, means)

    def _weighted_gram(
        self, curvature: Array, positions: Columns | None, means: Array | None
    ) -> Array:
        """Return (A - 1 m')' diag(c) (A - 1 m'), c = ``curvature`` >= 0, m = ``means`` (None: 0).

        positions : the columns of the block that make up A; None: all of them. The product is B'B
        with B = diag(sqrt(c)) (A - 1 m'), summed over pieces of rows by several threads.
        """
        # Rows without curvature are left out if they are more than a quarter.
        curved = np.flatnonzero(curvature)
        support = curved if 4 * curved.size <= 3 * curvature.size else None
        root = np.sqrt(curvature if support is None else curvature[support])

        def scaled(piece: slice) -> Array:
            """Return the rows ``piece`` of diag(sqrt(c)) (A - 1 m'), in float64."""
            if support is not None:
                columns = np.arange(self.shape[1]) if positions is None else positions
                rows_of_piece = _kernels.gather_dense(self._array, columns, support[piece])
            elif positions is None:
                rows_of_piece = self._array[piece].astype(np.float64)
            else:
                rows_of_piece = _kernels.gather_dense(self._array[piece], positions)
            if means is not None:
                rows_of_piece -= means
            rows_of_piece *= root[piece, None]
            return rows_of_piece

        def product(rows: slice) -> Array:
            """Return B'B for the given rows B of diag(sqrt(c)) (A - 1 m')."""
            # The product is computed in pieces: allocating memory for all rows takes longer than
            # the product.
            total = np.zeros((size, size))
            for piece in LIMITS.pieces(rows.stop - rows.start, size):
                deadline.check()
                root_rows = scaled(slice(rows.start + piece.start, rows.start + piece.stop))
                # NumPy computes a product of an array with its own transpose by BLAS's syrk, in
                # half the time.
                total += root_rows.T @ root_rows
            return total

        size = self.shape[1] if positions is None else positions.size
        deadline = Deadline.current()
        return _kernels.sum_of_pieces(product, root.size, 0.5 * root.size * size * size)

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights`` (n_samples,)."""
        return _kernels.scores_dense(self._array, weights, squared=True)

    def gather(self, columns: Columns) -> DenseBlock:
        """Return these columns of A; the block itself if they are all columns in order."""
        n_columns = self.shape[1]
        if columns.size == n_columns and (columns == np.arange(n_columns)).all():
            return self
        return DenseBlock(_kernels.gather_dense(self._array, columns, None, self.dtype))

    def append(self, other: Block) -> Block:
        """Return [A, B] for B = ``other``; B is written into spare columns if there are any.

        other : a block of the same rows; its columns come last.
        """
        check_same_rows(self, other)
        n_samples, size = self.shape
        total = size + other.shape[1]
        if not size:
            return other
        storage = self._storage
        columns = other.dense()
        dtype = np.result_type(self.dtype, columns.dtype)
        # Copy the columns if another block has used the spare ones, or there are too few.
        if storage.used != size or storage.array.shape[1] < total or storage.array.dtype != dtype:
            # Unused capacity takes address space, but no memory until it is written to.
            capacity = max(total, size + size // 2 + 8)
            storage = _Storage(np.empty((n_samples, capacity), dtype=dtype, order="F"), size)
            storage.array[:, :size] = self._array
        storage.array[:, size:total] = columns
        storage.used = total
        return DenseBlock(storage.array, storage)


class SparseBlock(Block):
    """A few columns A of X in compressed sparse form (CSC).

    data : float64 entries, column after column; indices : the row of each entry, in any order but
    without duplicates; indptr : (n_columns + 1,), where each column begins.

    Appending copies the block, which costs less than a pass over X.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.interfaces import SparseBlock
    >>> A = SparseBlock.of(np.array([[1.0, 0.0], [0.0, 4.0]]))
    >>> A.predict(np.array([1.0, 1.0]))
    array([1., 4.])
    """

    traits = Traits(is_sparse=True, keeps_gram=True)

    def __init__(
        self, data: Array, indices: NDArray[Any], indptr: NDArray[Any], n_samples: int
    ) -> None:
        """Store the three arrays of the compressed columns, and the number of rows."""
        self._data = data
        self._indices = indices
        self._indptr = indptr.astype(indices.dtype, copy=False)
        self._n_samples = n_samples
        self.shape = self._n_samples, self._indptr.shape[0] - 1
        self.dtype = self._data.dtype

    @classmethod
    def of(cls, X: Any) -> SparseBlock:
        """Return the nonzero entries of X, a dense or sparse array, as a block."""
        X = sp.csc_array(X)
        data = X.data.astype(np.float64, copy=False)
        return cls(data, X.indices, X.indptr, X.shape[0])

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the recipe of a pickle: the three arrays and the number of samples."""
        return SparseBlock, (*self._parts, self._n_samples)

    @property
    def _parts(self) -> tuple[Array, NDArray[Any], NDArray[Any]]:
        """The entries, their row indices, and the column pointers."""
        return self._data, self._indices, self._indptr

    def stored(self) -> sp.csc_array:
        """Return A as a SciPy array that shares memory with the block and must not be modified."""
        return sp.csc_array(self._parts, shape=self.shape, copy=False)

    def dense(self) -> Array:
        """Return the block as a dense array (n_samples, n_columns)."""
        return self.stored().toarray(order="F")

    def predict(self, weights: Array) -> Array:
        """Return A w, (n_samples,), for w = ``weights`` and the columns A of the block."""
        return _kernels.sparse_sums(*self._parts, weights, self._n_samples)

    def scores(self, v: Array) -> Scores:
        """Return A'v for v (n_samples,) and the columns A of the block."""
        return ArrayScores(_kernels.sparse_dots(*self._parts, v))

    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S, S = ``positions`` (None: all), as a sum over rows.

        curvature : (n_samples,).
        """
        selected = self if positions is None else self.gather(positions)
        return weighted_squares(selected.stored().tocsr(), curvature)

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights`` (n_samples,)."""
        return _kernels.sparse_dots(*self._parts, weights, squared=True)

    def gather(self, columns: Columns) -> SparseBlock:
        """Return these columns of A; the block itself if they are all columns in order."""
        n_columns = self.shape[1]
        if columns.size == n_columns and (columns == np.arange(n_columns)).all():
            return self
        return SparseBlock(*take_compressed(*self._parts, columns), self._n_samples)

    def append(self, other: Block) -> Block:
        """Return [A, B] for B = ``other``, as a sparse block.

        other : a block of the same rows, whose columns come last.
        """
        check_same_rows(self, other)
        if not self.shape[1]:
            return other
        added = other.stored() if other.traits.is_sparse else sp.csc_array(other.dense())
        return SparseBlock.of(sp.hstack([self.stored(), added], format="csc"))


@singledispatch
def coupled_gram(block: Block, curvature: Array, coupling: Any) -> Array:
    """Return A'(diag(c) - K K')A, (n_columns, n_columns), for the columns A of a block.

    c = ``curvature`` (n_samples,) and K = ``coupling`` (n_samples, k): the Hessian of a loss that
    couples samples, in the coefficients of the columns.
    """
    cross_products = np.asarray(coupling.T @ block.dense())
    return np.asarray(block.gram(curvature) - cross_products.T @ cross_products)


@coupled_gram.register
def _sparse_coupled_gram(block: SparseBlock, curvature: Array, coupling: Any) -> Array:
    """Return A'(diag(c) - K K')A for a sparse block A, c = ``curvature`` and K = ``coupling``.

    If K is sparse, too, K'A is, and nothing becomes dense but the result.
    """
    if not sp.issparse(coupling):
        return coupled_gram.dispatch(Block)(block, curvature, coupling)
    stored: Any = coupling
    cross_products = (stored.T @ block.stored()).tocsr()
    return np.asarray(
        block.gram(curvature) - weighted_squares(cross_products, np.ones(cross_products.shape[0]))
    )
