"""Entries: some entries of W are observed (completion)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn import _kernels
from atomlearn.core.data.blocks import SparseBlock
from atomlearn.core.interfaces import Array, Block, Columns, Design, Scores
from atomlearn.core.interfaces.scores import norms_by_label
from atomlearn.matrices.designs.base import MatrixDesign
from atomlearn.matrices.scores import ScoreMatrix, Shape, check_tensor_shape
from atomlearn.matrices.settings import SETTINGS


class Entries(MatrixDesign):
    """Predictions W[rows_i, cols_i]: one sample for each observed entry (repeats allowed).

    Keeps 4 bytes a sample, 4 more where they do not come row after row with increasing columns
    (both twice that beyond 2^31), and no array of p q numbers: scores are a sparse matrix with a
    number for each distinct observed entry.

    Parameters
    ----------
    rows, cols : array-like of int (n_samples,)
        ``rows``: the flat index in row-major order where ``cols`` is None.
    shape : (p, q), or the shape of a tensor
        A tensor (d_1, ..., d_m) is a matrix of shape (d_1, d_2 ... d_m); its entries are given by
        their flat index, ``np.ravel_multi_index(indices, shape)``.

    Examples
    --------
    Three entries of a matrix of rank one, and what completes it:

    >>> from atomlearn import norms, solve
    >>> from atomlearn.designs import Entries
    >>> seen = Entries([0, 0, 1], [0, 1, 0], (2, 2))
    >>> fit = solve(seen, [1.0, 2.0, 2.0], norm=norms.TraceNorm(), level=1e-3)
    >>> fit.coef.round(1).tolist()
    [[1.0, 2.0], [2.0, 1.0]]
    """

    #: Nothing is read but the vectors.
    reads_at_once = True

    def __init__(self, rows: object, cols: object, shape: tuple[int, ...]) -> None:
        sizes = check_tensor_shape("Entries", shape)
        self.matrix_shape: Shape = (sizes[0], math.prod(sizes[1:]))
        p, q = self.matrix_shape
        if cols is None:
            flat = _indices(rows, "rows", p * q)
            i, j = flat // q, flat % q
        else:
            i, j = _indices(rows, "rows", p), _indices(cols, "cols", q)
        if i.size != j.size:
            raise ValueError(
                f"Entries: rows and cols must be of one length, got {i.size} and {j.size}; "
                "give a row and a column for each observed entry"
            )
        if not i.size:
            raise ValueError("Entries needs at least one observed entry, got none")
        kind = np.int32 if max(p, q, i.size) < 2**31 else np.int64
        self._order: NDArray[Any] | None = None
        if not _in_order(i, j):
            order = np.lexsort((j, i))
            i, j = i[order], j[order]
            self._order = order.astype(kind)
        self._cols: Columns = j.astype(kind)
        #: Where the samples of each row begin, in sorted order, (p + 1,).
        self._starts = _starts(i, p, kind)
        first = (i[1:] != i[:-1]) | (j[1:] != j[:-1])
        #: Place of each sample, in sorted order, among the distinct entries; None: all distinct.
        self._entry: Columns | None = None
        self._indices, self._indptr = self._cols, self._starts
        if not first.all():
            first = np.concatenate([[True], first])
            self._entry = np.cumsum(first) - 1
            self._indices, self._indptr = self._cols[first], _starts(i[first], p, kind)

    @property
    def shape(self) -> tuple[int, int]:
        return self._cols.size, self.matrix_shape[0] * self.matrix_shape[1]

    def scores(self, v: Array) -> Scores:
        # A copy where none is made anyway: the caller may use v again before the scores are asked.
        as_it_is = self._order is None and self._entry is None
        return self._scores(np.array(v) if as_it_is else v)

    def predict(self, weights: Array) -> Array:
        """Return w at the observed entries."""
        return self._unsorted(np.asarray(weights, dtype=np.float64)[self._flat()])

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return the number (or the sum of c) of the observations of every entry."""
        weights = None if curvature is None else self._sorted(curvature)
        counts = np.bincount(self._flat(), weights=weights, minlength=self.shape[1])
        return counts.astype(np.float64)

    def gather(self, columns: Columns) -> Block:
        flat = self._flat()
        start = np.searchsorted(flat, columns, side="left")
        stop = np.searchsorted(flat, columns, side="right")
        indptr = np.concatenate([[0], np.cumsum(stop - start)]).astype(np.int64)
        shift = np.repeat(start - indptr[:-1], stop - start)
        samples: Any = np.arange(indptr[-1]) + shift
        if self._order is not None:
            samples = self._order[samples].astype(np.int64)
        return SparseBlock(np.ones(samples.size), samples, indptr, self.shape[0])

    def predictions(self, images: Array, right: Array) -> Array:
        """Return the observed entries of images right': O(n_samples r)."""
        return self._unsorted(_kernels.sampled_products(self._cols, self._starts, images, right))

    def ridge_steps(self) -> EntryRidge:
        """Return steps for the factors of W: 8 bytes a sample while it is held, O(n r^2) each."""
        return EntryRidge(self, self._cols, self._starts, self._order)

    def unfolded(self, shape: tuple[int, ...], mode: int) -> Design:
        """Return the design of the entries of the mode-th unfolding, the samples unchanged."""
        flat = np.empty(self._cols.size, dtype=np.int64)
        flat[slice(None) if self._order is None else self._order] = self._flat()
        index = np.unravel_index(flat, shape)
        others = [axis for axis in range(len(shape)) if axis != mode]
        sizes = tuple(shape[axis] for axis in others)
        cols = np.ravel_multi_index(tuple(index[axis] for axis in others), sizes)
        return Entries(index[mode], cols, (shape[mode], math.prod(sizes)))

    def _flat(self) -> Columns:
        """Return the column of every sample, in sorted order."""
        rows = np.repeat(np.arange(self.matrix_shape[0]), np.diff(self._starts))
        flat: Columns = rows.astype(np.int64) * self.matrix_shape[1] + self._cols
        return flat

    def _sorted(self, v: Array) -> Array:
        return v if self._order is None else v[self._order]

    def _unsorted(self, v: Array) -> Array:
        if self._order is None:
            return v
        result = np.empty_like(v)
        result[self._order] = v
        return result

    def _scores(self, v: Array) -> EntryScores:
        data = self._sorted(np.asarray(v, dtype=np.float64))
        if self._entry is not None:
            data = np.bincount(self._entry, weights=data).astype(np.float64)
        data = np.ascontiguousarray(data)
        Z = sparse.csr_array((data, self._indices, self._indptr), shape=self.matrix_shape)
        return EntryScores(Z)


class EntryRidge:
    """Steps for the factors of W: each sample is in the regressions of its row and its column."""

    def __init__(
        self, entries: Entries, cols: Columns, starts: Columns, order: Columns | None
    ) -> None:
        self._entries, self._rows = entries, (cols, starts, order)
        places: Any = np.arange(cols.size, dtype=cols.dtype)
        by_columns = sparse.csr_array((places, cols, starts), shape=entries.matrix_shape).tocsc()
        places = by_columns.data if order is None else order[by_columns.data]
        self._cols = (by_columns.indices, by_columns.indptr, places)

    def predictions(self, left: Array, right: Array) -> Array:
        """Return the observed entries of left right'."""
        return self._entries.predictions(left, right)

    def left(
        self, slope: Array, curvature: Array, left: Array, right: Array, amount: float
    ) -> Array:
        """Return the next left factor."""
        at, starts, order = self._rows
        return _kernels.factor_ridge(at, starts, slope, curvature, right, left, amount, order)

    def right(
        self, slope: Array, curvature: Array, left: Array, right: Array, amount: float
    ) -> Array:
        """Return the next right factor."""
        at, starts, order = self._cols
        return _kernels.factor_ridge(at, starts, slope, curvature, left, right, amount, order)


def sparse_matrix(Z: sparse.csr_array) -> ScoreMatrix:
    """Return Z, stored at its non-zero entries in compressed rows."""
    parts, (p, q) = (Z.data, Z.indices, Z.indptr), Z.shape

    def dot(x: Array) -> Array:
        if x.ndim == 1:
            return _kernels.sparse_dots(*parts, x)
        return _kernels.matrix_product_csr(*parts, x)

    def transpose_dot(x: Array) -> Array:
        return _kernels.sparse_sums(*parts, x, q) if x.ndim == 1 else np.asarray(Z.T @ x)

    def dense() -> Array:
        if p * q > SETTINGS.dense_entries:
            raise TypeError(
                f"a matrix of scores of shape {(p, q)} is not made dense; use the trace norm, "
                "which only multiplies with it, or fewer rows and columns"
            )
        return Z.toarray()

    return ScoreMatrix((p, q), dot, transpose_dot, dense)


class EntryScores(Scores):
    """z, zero but at the observed entries: a sparse matrix (p, q) in compressed rows, sorted."""

    def __init__(self, Z: sparse.csr_array) -> None:
        self._Z = Z
        self.as_matrix = sparse_matrix(Z)
        self._keys: Columns | None = None

    @property
    def n_columns(self) -> int:
        return int(self._Z.shape[0]) * int(self._Z.shape[1])

    def entries(self) -> tuple[Columns, Array]:
        """Return the columns observed, increasing, and their scores; read-only use."""
        if self._keys is None:
            rows = np.repeat(np.arange(self._Z.shape[0]), np.diff(self._Z.indptr))
            self._keys = rows * int(self._Z.shape[1]) + self._Z.indices
        return self._keys, self._Z.data

    def top(self, count: int) -> tuple[Columns, Array]:
        count = min(int(count), self.n_columns)
        if count <= 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        keys, data = self.entries()
        places, values = _kernels.top_magnitude(data, min(count, data.size))
        found = values != 0
        columns, values = keys[places[found]], values[found]
        if columns.size < count:  # zeros fill up, the smallest columns first
            zeros = np.setdiff1d(np.arange(min(self.n_columns, count + columns.size)), columns)
            zeros = zeros[: count - columns.size]
            columns = np.concatenate([columns, zeros])
            values = np.concatenate([values, np.zeros(zeros.size)])
        return columns, values

    def at(self, columns: Columns) -> Array:
        keys, data = self.entries()
        places = np.minimum(np.searchsorted(keys, columns), keys.size - 1)
        return np.where(keys[places] == columns, data[places], 0.0)

    def full(self) -> Array:
        if self.n_columns > SETTINGS.dense_entries:
            raise TypeError(
                f"the scores of {self.n_columns} entries, of which {self._Z.nnz} are observed, are "
                "not made dense; use a norm that asks for the best entries, groups or products"
            )
        return self._Z.toarray().reshape(-1)

    def group_norms(self, labels: NDArray[np.int64], n_groups: int) -> Array:
        keys, data = self.entries()
        return norms_by_label(data, labels[keys], n_groups)


def _indices(given: object, name: str, size: int) -> Columns:
    """Return indices as int64 in [0, size), or raise with the remedy."""
    array = np.asarray(given)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"Entries: {name} must be a vector of whole numbers, got dtype {array.dtype} of shape "
            f"{array.shape}; use rows, cols = np.nonzero(mask)"
        )
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < size:
        outside = np.flatnonzero((array < 0) | (array >= size))
        raise ValueError(
            f"Entries: {name}[{outside[0]}] is {array[outside[0]]}; it must lie in [0, {size})"
        )
    return array.astype(np.int64, copy=False)


def _in_order(rows: Columns, cols: Columns) -> bool:
    """Return whether the entries come row after row, with columns that do not decrease."""
    ahead = rows[1:] > rows[:-1]
    ahead |= (rows[1:] == rows[:-1]) & (cols[1:] >= cols[:-1])
    return bool(ahead.all())


def _starts(rows: Columns, n_rows: int, kind: Any) -> Columns:
    """Return where each row begins among these, which do not decrease, (n_rows + 1,)."""
    counts = np.bincount(rows, minlength=n_rows)
    starts: Columns = np.concatenate([[0], np.cumsum(counts)]).astype(kind)
    return starts
