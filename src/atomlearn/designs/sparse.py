"""X in compressed sparse columns or rows, 32- and 64-bit indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.designs.blocks import (
    DENSE_FROM,
    DenseBlock,
    SparseBlock,
    prefers_dense,
    take_compressed,
)
from atomlearn.designs.scores import ArrayScores
from atomlearn.interfaces.design import Array, Block, Columns, Design, Scores

#: Entries of a CSR array searched at a time while gathering columns (bounds temporary memory).
SEARCH_ENTRIES = 2**20


#: Codes of ``check_sparse`` whose position is one in indptr.
_POINTER_FAULTS = (1, 2, 3)


class SparseDesign(Design):
    """z = X'v for a SciPy CSC or CSR array or matrix, which is not copied.

    Indices may be unsorted. The structure is checked before any arithmetic, so broken arrays
    raise ValueError instead of reading foreign memory. Duplicate entries are summed in a copy,
    made only where there are any.

    Columns of a CSR array are gathered by one pass over it; convert with ``X.tocsc()`` once
    where many small gathers are expected and memory allows a second copy of X.
    """

    __slots__ = ("_by_columns", "_data", "_full", "_indices", "_indptr", "_shape")

    def __init__(self, X: Any) -> None:
        kind = X.format if is_sparse(X) else type(X).__name__
        if kind not in ("csc", "csr"):
            raise ValueError(
                f"SparseDesign needs a SciPy CSC or CSR array, got {kind}; "
                "as_design(X) converts other formats"
            )
        if X.dtype not in (np.float32, np.float64) or not X.dtype.isnative:
            raise ValueError(
                f"SparseDesign needs float32 or float64 data, got {X.dtype}; "
                "as_design(X) converts it once"
            )
        self._by_columns = X.format == "csc"
        self._shape = (int(X.shape[0]), int(X.shape[1]))
        data, indices, indptr = checked_parts(X)
        if has_duplicates(indices, indptr):
            merged = type(X)((data.copy(), indices.copy(), indptr.copy()), shape=self._shape)
            merged.sum_duplicates()
            data, indices, indptr = checked_parts(merged)
        self._data, self._indices, self._indptr = data, indices, indptr
        # Where X itself is nearly full, its columns are too: never go back to sparse blocks.
        self._full = data.shape[0] >= DENSE_FROM * self._shape[0] * self._shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._data.dtype

    @property
    def nonzeros(self) -> int:
        """Number of stored entries."""
        return int(self._data.shape[0])

    @property
    def _parts(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self._data, self._indices, self._indptr

    def scores(self, v: Array) -> Scores:
        if self._by_columns:
            return ArrayScores(_kernels.scores_csc(*self._parts, v))
        return ArrayScores(_kernels.scores_csr(*self._parts, v, self._shape[1]))

    def predict(self, weights: Array) -> Array:
        """Return X w for a dense w: one pass."""
        if self._by_columns:
            return _kernels.predict_csc(*self._parts, weights, self._shape[0])
        return _kernels.predict_csr(*self._parts, weights)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 for every column: one pass."""
        if self._by_columns:
            return _kernels.squared_norms_csc(*self._parts, self._shape[0], curvature)
        return _kernels.squared_norms_csr(*self._parts, self._shape[1], curvature)

    def gather(self, columns: Columns) -> Block:
        """Return the columns as a dense block where they are full enough, else as a sparse one."""
        take = take_compressed if self._by_columns else search_rows
        data, indices, indptr = take(*self._parts, columns)
        n_samples = self._shape[0]
        block = SparseBlock(data, indices, indptr, n_samples)
        if self._full:
            return DenseBlock(block.dense())
        if prefers_dense(n_samples, columns.shape[0], data.shape[0]):
            return DenseBlock(block.dense(), nonzeros=data.shape[0])
        return block


def is_sparse(X: object) -> bool:
    """Return True for every SciPy sparse array and matrix."""
    return bool(sp.issparse(X))


def checked_parts(X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return data, indices and indptr of a CSC or CSR array, or say what is broken in them.

    No index is followed before it has been checked.
    """
    kind, by_columns = X.format.upper(), X.format == "csc"
    n_minor, n_major = X.shape if by_columns else X.shape[::-1]
    remedy = "rebuild it from (row, column, value) triplets with scipy.sparse.coo_array"
    parts = [np.asarray(part) for part in (X.data, X.indices, X.indptr)]
    for name, part in zip(("data", "indices", "indptr"), parts, strict=True):
        if part.ndim != 1:
            raise ValueError(f"{kind} array: {name} must be 1-d, got {part.ndim}-d; {remedy}")
        if name != "data" and part.dtype.kind not in "iu":
            raise ValueError(f"{kind} array: {name} must be integers, got {part.dtype}; {remedy}")
    data, indices, indptr = parts
    if indptr.shape[0] != n_major + 1:
        raise ValueError(
            f"{kind} array of shape {tuple(X.shape)}: indptr must have {n_major + 1} entries, "
            f"got {indptr.shape[0]}; {remedy}"
        )
    stored = int(indptr[-1])
    if not 0 <= stored <= min(data.shape[0], indices.shape[0]):
        raise ValueError(
            f"{kind} array: indptr ends at {stored}, but there are {data.shape[0]} values and "
            f"{indices.shape[0]} indices; {remedy}"
        )
    index_type = np.int32 if indices.dtype == np.int32 and stored < 2**31 else np.int64
    indices = np.ascontiguousarray(indices[:stored], dtype=index_type)
    indptr = _narrowed(indptr, np.dtype(index_type), kind, remedy)
    fault, position = _kernels.check_sparse(indices, indptr, n_major, n_minor)
    if fault:
        part = indptr if fault in _POINTER_FAULTS else indices
        raise ValueError(
            f"{kind} array of shape {tuple(X.shape)}: {_kernels.SPARSE_FAULTS[fault]} "
            f"({part[position]} at position {position}); {remedy}"
        )
    return np.ascontiguousarray(data[:stored]), indices, indptr


def _narrowed(
    indptr: NDArray[Any], index_type: np.dtype[Any], kind: str, remedy: str
) -> NDArray[Any]:
    """Return indptr in the type of the indices; what does not fit is out of range anyway."""
    if indptr.dtype == index_type:
        return np.ascontiguousarray(indptr)
    narrowed = indptr.astype(index_type)
    if (narrowed != indptr).any():
        raise ValueError(f"{kind} array: indptr holds values out of range; {remedy}")
    return narrowed


def has_duplicates(indices: NDArray[Any], indptr: NDArray[Any]) -> bool:
    """Return True where a column (or row) names one index twice; indices may be unsorted."""
    if indices.size < 2:
        return False
    for start in range(0, indices.size - 1, SEARCH_ENTRIES):
        piece = indices[start : start + SEARCH_ENTRIES + 1]
        # Not increasing is allowed where a new column starts, and only there.
        stuck = np.flatnonzero(piece[1:] <= piece[:-1]) + (start + 1)
        if stuck.size and not _all_starts(stuck, indptr):
            return _unsorted_duplicates(indices, indptr)
    return False


def _all_starts(places: NDArray[np.int64], indptr: NDArray[Any]) -> bool:
    found = np.searchsorted(indptr, places)
    return bool((indptr[np.minimum(found, indptr.size - 1)] == places).all())


def _unsorted_duplicates(indices: NDArray[Any], indptr: NDArray[Any]) -> bool:
    """Sort one bounded run of columns at a time: no copy of the whole structure."""
    n_major = indptr.size - 1
    first = 0
    while first < n_major:
        last = int(np.searchsorted(indptr, int(indptr[first]) + SEARCH_ENTRIES, side="right")) - 1
        last = min(max(last, first + 1), n_major)
        piece = indices[int(indptr[first]) : int(indptr[last])].astype(np.int64)
        owner = np.repeat(np.arange(last - first), np.diff(indptr[first : last + 1]))
        order = np.lexsort((piece, owner))
        piece, owner = piece[order], owner[order]
        if ((piece[1:] == piece[:-1]) & (owner[1:] == owner[:-1])).any():
            return True
        first = last
    return False


def search_rows(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], columns: Columns
) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    """Return float64 data, row indices and pointers of these columns of a CSR array: one pass."""
    distinct, place = np.unique(columns, return_inverse=True)
    wanted = np.zeros(int(indices.max(initial=-1)) + 2, dtype=bool)
    wanted[distinct[distinct < wanted.size]] = True
    hits = [
        np.flatnonzero(wanted[indices[start : start + SEARCH_ENTRIES]]) + start
        for start in range(0, indices.size, SEARCH_ENTRIES)
    ]
    found = np.concatenate(hits) if hits else np.zeros(0, dtype=np.int64)
    rows = (np.searchsorted(indptr, found, side="right") - 1).astype(indices.dtype)
    owner = np.searchsorted(distinct, indices[found])
    order = np.argsort(owner, kind="stable")
    lengths = np.bincount(owner, minlength=distinct.size)
    pointers = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    values = data[found[order]].astype(np.float64)
    rows = rows[order]
    if distinct.size == columns.size and (place == np.arange(columns.size)).all():
        return values, rows, pointers.astype(indices.dtype)
    return take_compressed(values, rows, pointers.astype(indices.dtype), place.astype(np.int64))
