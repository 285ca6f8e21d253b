"""Entries: the sampling operator of matrix completion, which observes some entries of W."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn import _kernels
from atomlearn.core import (
    LIMITS,
    Array,
    ArrayScores,
    Block,
    Columns,
    Design,
    Scores,
    SparseBlock,
    Traits,
)
from atomlearn.matrices.designs.base import MatrixDesign
from atomlearn.matrices.scores import ScoreMatrix, check_tensor_shape


class Entries(MatrixDesign):
    """Sampling operator of matrix completion: the prediction of sample i is W[rows_i, cols_i].

    Entries may be observed repeatedly. Memory is 4 bytes per sample, and 4 more unless samples are
    sorted by row, then column (twice that for sizes beyond 2^31). No dense p x q array is formed:
    the scores are a sparse matrix with the distinct observed entries.

    Parameters
    ----------
    rows, cols : array-like of int (n_samples,)
        Row and column of the entry of each sample. If ``cols`` is None, ``rows`` are the flat
        indices in row-major order.
    shape : (p, q), or the shape of a tensor
        A tensor (d_1, ..., d_m) is a matrix of shape (d_1, d_2 ... d_m); its entries are given by
        their flat index, ``np.ravel_multi_index(indices, shape)``.

    Examples
    --------
    Three entries of a matrix of rank one, and its completion:

    >>> from atomlearn import norms, solve
    >>> from atomlearn.designs import Entries
    >>> seen = Entries([0, 0, 1], [0, 1, 0], (2, 2))
    >>> fit = solve(seen, [1.0, 2.0, 2.0], norm=norms.TraceNorm(), alpha=3e-4, fit_intercept=False)
    >>> fit.coef.round(1).tolist()
    [[1.0, 2.0], [2.0, 1.0]]
    """

    def __init__(self, rows: object, cols: object, shape: tuple[int, ...]) -> None:
        """Check the indices, and sort the distinct entries by row, then column."""
        sizes = check_tensor_shape("Entries", shape)
        p, q = sizes[0], math.prod(sizes[1:])
        # There are no data other than these vectors, so that all reads are free.
        self.traits = Traits(reads_at_once=True, matrix_shape=(p, q))
        if cols is None:
            flat = _indices(rows, "rows", p * q)
            i = flat // q
            j = flat % q
        else:
            i = _indices(rows, "rows", p)
            j = _indices(cols, "cols", q)
        if i.size != j.size:
            raise ValueError(
                f"Entries: rows and cols must be of one length, got {i.size} and {j.size}; "
                "give a row and a column for each observed entry"
            )
        if not i.size:
            raise ValueError("Entries needs at least one observed entry, got none")
        # Small indices take half of the memory.
        kind = np.int32 if max(p, q, i.size) < 2**31 else np.int64
        keys = i * q + j  # the flat index of the entry of each sample
        self._n_samples = i.size
        #: Number of the distinct entry of each sample; None: samples are the distinct entries, in
        #: order.
        self._place: Columns | None = None
        if not (keys[1:] > keys[:-1]).all():
            keys, inverse = np.unique(keys, return_inverse=True)
            self._place = inverse.ravel().astype(kind)
        #: The distinct entries, in compressed rows.
        self._starts: Columns = np.searchsorted(keys, np.arange(p + 1) * q).astype(kind)
        self._cols: Columns = (keys % q).astype(kind)
        self.shape = self._n_samples, self.matrix_shape[0] * self.matrix_shape[1]

    def scores(self, v: Array) -> Scores:
        """Return the sums of v over the samples of each entry, as a sparse matrix (p, q)."""
        # A copy, because the caller may change v before the scores are read.
        data = np.array(v, dtype=np.float64) if self._place is None else self.summed(v)
        Z = sparse.csr_array((data, self._cols, self._starts), shape=self.matrix_shape)
        return EntryScores(Z)

    @property
    def _keys(self) -> Columns:
        """The columns (flat indices) of the distinct observed entries, in increasing order."""
        return flat_columns(self._cols, self._starts, self.matrix_shape[1])

    def predict(self, weights: Array) -> Array:
        """Return the predictions (n_samples,): ``weights`` (p q,) at the observed entries."""
        return self._spread(np.asarray(weights, dtype=np.float64)[self._keys])

    def gather(self, columns: Columns) -> Block:
        """Return the columns W[i, j] as a sparse block: 1 at the samples of the entry, else 0."""
        n = self._n_samples
        keys = self._keys
        positions = np.searchsorted(keys, columns)
        is_observed = keys[np.minimum(positions, keys.size - 1)] == columns
        entry_of = np.arange(n) if self._place is None else self._place
        # The last column represents all entries that are not observed.
        shape = (n, keys.size + 1)
        samples = sparse.csr_array((np.ones(n), entry_of, np.arange(n + 1)), shape=shape)
        block: Any = samples[:, np.where(is_observed, positions, keys.size)].tocsc()
        indices = block.indices.astype(np.int64)
        starts = block.indptr.astype(np.int64)
        return SparseBlock(block.data, indices, starts, n)

    def predictions(self, images: Array, right: Array) -> Array:
        """Return the observed entries of W = images right', in O(n_samples r) operations."""
        return self._spread(_kernels.sampled_products(self._cols, self._starts, images, right))

    def ridge_steps(self) -> Callable[[Array], EntryRidge]:
        """Return a function to ``EntryRidge`` steps: 8 bytes per sample, O(n_samples r^2) each."""
        return lambda weight: EntryRidge(self, self._cols, self._starts)

    def unfolded(self, shape: tuple[int, ...], mode: int) -> Design:
        """Return the design of the entries of the mode-th unfolding, for the same samples.

        The unfolding of a tensor of this shape has shape[mode] rows; the other modes, in order, are
        its columns.
        """
        index = np.unravel_index(self._spread(self._keys), shape)
        others = [axis for axis in range(len(shape)) if axis != mode]
        sizes = tuple(shape[axis] for axis in others)
        cols = np.ravel_multi_index(tuple(index[axis] for axis in others), sizes)
        return Entries(index[mode], cols, (shape[mode], math.prod(sizes)))

    def summed(self, v: Array) -> Array:
        """Return the sum of v (n_samples,) over the samples of each distinct entry."""
        sums: Array = v if self._place is None else np.bincount(self._place, v).astype(np.float64)
        return sums

    def _spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of each sample, given ``values``, one for each distinct entry."""
        return values if self._place is None else values[self._place]


class EntryRidge:
    """Alternating ridge regression steps for W = left right', with one regression per row of W.

    For the factor right there is one regression per column of W. Each uses the observed entries of
    its row or column.

    Parameters
    ----------
    entries : Entries
        The design.
    cols, starts : (n_entries,) and (p + 1,) int
        The distinct observed entries, in compressed rows: row i has the columns
        cols[starts[i] : starts[i + 1]].
    """

    def __init__(self, entries: Entries, cols: Columns, starts: Columns) -> None:
        """Store the observed entries, and the same entries ordered by columns."""
        self._entries = entries
        # The same entries by rows, and by columns with the position of each entry in row order.
        self._rows = ((cols, starts), None)
        positions: Any = np.arange(cols.size, dtype=cols.dtype)
        by_columns = sparse.csr_array((positions, cols, starts), shape=entries.matrix_shape).tocsc()
        self._cols = (by_columns.indices, by_columns.indptr), by_columns.data
        self.predictions = entries.predictions

    def step(
        self,
        is_left: bool,
        slope: Array,
        curvature: Array,
        updated: Array,
        fixed: Array,
        amount: float,
    ) -> Array:
        """Return the updated factor ``updated`` (left if ``is_left``), with ``fixed`` fixed.

        ``slope`` and ``curvature`` (n_samples,) are first and second derivatives of the loss in the
        predictions; ``amount`` is the ridge parameter.
        """
        (indices, starts), order = self._rows if is_left else self._cols
        # The derivatives of the loss at each distinct entry.
        slopes = self._entries.summed(slope)
        curvatures = self._entries.summed(curvature)
        pattern = indices, starts
        return _kernels.factor_ridge(*pattern, slopes, curvatures, fixed, updated, amount, order)


def flat_columns(cols: NDArray[Any], starts: NDArray[Any], q: int) -> Columns:
    """Return the row-major flat indices of the entries of a CSR matrix with q columns.

    Row i has the entries in the columns cols[starts[i] : starts[i + 1]].
    """
    rows = np.repeat(np.arange(starts.size - 1, dtype=np.int64), np.diff(starts))
    columns: Columns = rows * q + cols
    return columns


def dense_scores(Z: sparse.csr_array) -> Array:
    """Return a sparse matrix of scores Z (p, q) as an array; raise TypeError if it is too large."""
    p, q = Z.shape
    if p * q > LIMITS.most_dense:
        raise TypeError(
            f"the scores of {p * q} entries, of which {Z.nnz} are observed, are not made dense; "
            "use the trace norm, which only multiplies with them, a norm that asks for the best "
            "entries or groups, or fewer rows and columns"
        )
    return np.asarray(Z.toarray())


def sparse_matrix(Z: sparse.csr_array) -> ScoreMatrix:
    """Return the CSR matrix Z as a ``ScoreMatrix``."""
    parts = (Z.data, Z.indices, Z.indptr)
    (p, q) = Z.shape

    def dot(x: Array) -> Array:
        """Return Z x for a vector (q,) or a matrix (q, r)."""
        if x.ndim == 1:
            return _kernels.sparse_dots(*parts, x)
        return _kernels.matrix_product_csr(*parts, x)

    def transpose_dot(x: Array) -> Array:
        """Return Z'x for a vector (p,) or a matrix (p, r)."""
        return _kernels.sparse_sums(*parts, x, q) if x.ndim == 1 else np.asarray(Z.T @ x)

    return ScoreMatrix((p, q), dot, transpose_dot, lambda: dense_scores(Z))


class EntryScores(Scores):
    """Scores that are zero except at the observed entries.

    ``Z`` is a CSR matrix (p, q) of the scores, whose indices are sorted.
    """

    def __init__(self, Z: sparse.csr_array) -> None:
        """Store the CSR matrix Z (p, q) of the scores."""
        self._Z = Z
        self.as_matrix = sparse_matrix(Z)
        self.n_columns = int(self._Z.shape[0]) * int(self._Z.shape[1])

    @cached_property
    def _keys(self) -> Columns:
        """The columns (flat indices) of the observed entries, in increasing order."""
        return flat_columns(self._Z.indices, self._Z.indptr, self._Z.shape[1])

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the columns of the ``count`` largest |scores|, and their scores.

        If fewer scores are nonzero, the first columns with the score 0 follow.
        """
        count = min(int(count), self.n_columns)
        if count <= 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        keys = self._keys
        data = self._Z.data
        positions, values = _kernels.top_magnitude(data, min(count, data.size))
        is_nonzero = values != 0
        columns = keys[positions[is_nonzero]]
        values = values[is_nonzero]
        if columns.size < count:  # add zeros, the smallest columns first
            zeros = np.setdiff1d(np.arange(min(self.n_columns, count + columns.size)), columns)
            zeros = zeros[: count - columns.size]
            columns = np.concatenate([columns, zeros])
            values = np.concatenate([values, np.zeros(zeros.size)])
        return columns, values

    def at(self, columns: Columns) -> Array:
        """Return the scores of these entries (columns), 0 for entries that are not observed."""
        # A column is observed if it is at the position where it would be inserted.
        keys = self._keys
        data = self._Z.data
        positions = np.minimum(np.searchsorted(keys, columns), keys.size - 1)
        return np.where(keys[positions] == columns, data[positions], 0.0)

    def full(self) -> Array:
        """Return all scores, (p q,), if they are not too many."""
        return dense_scores(self._Z).reshape(-1)

    def group_norms(self, labels: NDArray[np.int64], n_groups: int) -> Array:
        """Return the l2 norm of the scores over each group, (n_groups,).

        ``labels`` (p q,) has the group of each entry. Only observed entries contribute.
        """
        return ArrayScores(self._Z.data).group_norms(labels[self._keys], n_groups)


def _indices(values: object, name: str, size: int) -> Columns:
    """Return the indices ``values`` as int64 after checking that they are in [0, size).

    Error messages call them ``name``.
    """
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"Entries: {name} must be a vector of whole numbers, got dtype {array.dtype} of shape "
            f"{array.shape}; use rows, cols = np.nonzero(mask)"
        )
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < size:
        outside = np.flatnonzero((array < 0) | (array >= size))
        raise ValueError(
            f"Entries: {name}[{outside[0]}] is {array[outside[0]]}; it must be in [0, {size})"
        )
    return array.astype(np.int64, copy=False)
