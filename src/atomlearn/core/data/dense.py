"""X as an array: both orders, both precisions, any strides, read-only and memory-mapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.parts import ColumnView
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.interfaces import Array, Columns, Design, Scores


class DenseDesign(Design):
    """z = X'v for a float32 or float64 array, which is never copied, cast or written to.

    Parameters
    ----------
    X : ndarray, shape (n_samples_stored, n_features)
        float32 or float64 in native byte order; ``as_design`` converts other types once.
    rows : ndarray of int64, optional
        The rows to use, in this order (repeats allowed): X is then read through them.

    Notes
    -----
    Sums are accumulated in float64 whatever the dtype of X. Where neither rows nor columns are
    contiguous, as in ``X[::2, ::3]``, small pieces are copied on the way, never all of X.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import DenseDesign
    >>> design = DenseDesign(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> design.scores(np.array([1.0, -1.0])).top(1)
    (array([0]), array([-2.]))
    """

    __slots__ = ("_X", "_is_contiguous", "_rows")

    def __init__(self, X: NDArray[Any], rows: NDArray[np.int64] | None = None) -> None:
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            raise ValueError(
                f"DenseDesign needs a 2-d NumPy array, got {type(X).__name__} of shape "
                f"{np.shape(X)}; as_design(X) converts tables and lists"
            )
        if X.dtype not in (np.float32, np.float64) or not X.dtype.isnative or not X.flags.aligned:
            raise ValueError(
                f"DenseDesign needs aligned float32 or float64 data in native byte order, got "
                f"dtype {X.dtype}; as_design(X) converts it once"
            )
        # A plain view: subclasses (memmap, matrix) have their own ideas of slicing.
        self._X: NDArray[Any] = X.view(np.ndarray)
        self._rows = None if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
        self._is_contiguous = _unit_stride(self._X, 0) or _unit_stride(self._X, 1)

    @property
    def shape(self) -> tuple[int, int]:
        n_rows = self._X.shape[0] if self._rows is None else self._rows.shape[0]
        return n_rows, self._X.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._X.dtype

    @property
    def array(self) -> NDArray[Any]:
        """The array that was given, of which ``rows`` may use a part; read-only use."""
        return self._X

    def stored(self) -> NDArray[Any] | None:
        """Return X itself, read-only use, where BLAS can read all of it in place; else None."""
        return self._X if self._is_contiguous and self._rows is None else None

    def scores(self, v: Array) -> Scores:
        if self._is_contiguous:
            return ArrayScores(_kernels.scores_dense(self._X, v, self._rows))
        return self.scores_many(v[:, None])[0]

    reads_at_once = True

    def scores_many(self, V: Array) -> Sequence[Scores]:
        if self._is_contiguous:
            return [ArrayScores(z) for z in _kernels.many_dense(self._X, V, self._rows)]
        Z, spread = np.zeros((V.shape[1], self._X.shape[1])), self._spread(V)
        for rows, columns, piece in self._pieces():
            Z[:, columns] += _kernels.many_dense(piece, spread[rows])
        return [ArrayScores(z) for z in Z]

    def gather(self, columns: Columns) -> DenseBlock:
        if self._is_contiguous:
            return DenseBlock(_kernels.gather_dense(self._X, columns, self._rows, self._X.dtype))
        result = np.empty((self.shape[0], columns.shape[0]), dtype=self._X.dtype, order="F")
        for place, column in enumerate(columns):
            whole = self._X[:, column]
            result[:, place] = whole if self._rows is None else whole[self._rows]
        return DenseBlock(result)

    def predict(self, weights: Array) -> Array:
        """Return X w for a dense w: one pass."""
        if self._is_contiguous:
            return _kernels.predict_dense(self._X, weights, self._rows)
        result = np.zeros(self._X.shape[0])
        for rows, columns, piece in self._pieces():
            result[rows] += _kernels.predict_dense(piece, weights[columns])
        return result if self._rows is None else result[self._rows]

    def product(self, W: Array) -> Array:
        """Return X W: by BLAS, of float32 a bounded number of rows at a time."""
        X = self.stored()
        if X is None:
            return super().product(W)
        if X.dtype == np.float64:
            return np.asarray(X @ W)
        return np.concatenate([X[some].astype(np.float64) @ W for some in self._casts()])

    def transposed_product(self, V: Array) -> Array:
        """Return X'V: by BLAS, of float32 a bounded number of rows at a time."""
        X = self.stored()
        if X is None:
            return super().transposed_product(V)
        if X.dtype == np.float64:
            return np.asarray(X.T @ V)
        result = np.zeros((X.shape[1], V.shape[1]))
        for some in self._casts():
            result += X[some].astype(np.float64).T @ V[some]
        return result

    def _casts(self) -> list[slice]:
        """Return the rows that are cast to float64 at a time."""
        step = LIMITS.converted_rows
        return [slice(start, start + step) for start in range(0, self.shape[0], step)]

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 for every column: one pass."""
        if self._is_contiguous:
            return _kernels.squared_norms_dense(self._X, curvature, self._rows)
        result = np.zeros(self._X.shape[1])
        spread = self._spread(np.ones(self.shape[0]) if curvature is None else curvature)
        for rows, columns, piece in self._pieces():
            result[columns] += _kernels.squared_norms_dense(piece, spread[rows])
        return result

    def with_rows(self, rows: NDArray[np.int64]) -> DenseDesign:
        """Return the design of these rows of this one, without copying X."""
        return DenseDesign(self._X, rows if self._rows is None else self._rows[rows])

    def with_columns(self, columns: Columns) -> Design | None:
        """Return the design of these columns: a view where columns are contiguous, else a copy."""
        n_samples, n_features = self.shape
        if _unit_stride(self._X, 0):
            return DenseColumns(self, columns)
        few = columns.size <= LIMITS.subset_share * n_features
        if not (few and columns.size * n_samples <= LIMITS.subset_entries):
            return None
        return DenseDesign(self.gather(columns).dense())

    def _spread(self, v: Array) -> Array:
        """Return v over all stored rows: the sum where a row is used more than once."""
        if self._rows is None:
            return v
        spread = np.zeros((self._X.shape[0], *v.shape[1:]))
        np.add.at(spread, self._rows, v)
        return spread

    def _pieces(self) -> Iterator[tuple[slice, slice, NDArray[Any]]]:
        """Yield contiguous copies of bounded size of an array with a step in both directions."""
        X, everything = self._X, slice(None)
        by_rows = abs(X.strides[0]) >= abs(X.strides[1])
        count, length = X.shape if by_rows else X.shape[::-1]
        width = max(1, LIMITS.copied_entries // max(length, 1))
        for start in range(0, count, width):
            part = slice(start, start + width)
            rows, columns = (part, everything) if by_rows else (everything, part)
            yield rows, columns, X[rows, columns].copy(order="C" if by_rows else "F")


class DenseColumns(ColumnView):
    """Some columns of an array whose columns are contiguous: the others are skipped, not read."""

    design: DenseDesign

    def scores(self, v: Array) -> Scores:
        # The columns of X are the rows of its transpose.
        rows = self.design._X.T
        return ArrayScores(_kernels.predict_dense(rows, self.design._spread(v), self.columns))

    def scores_many(self, V: Array) -> Sequence[Scores]:
        many = _kernels.many_dense(self.design._X, self.design._spread(V), columns=self.columns)
        return [ArrayScores(z) for z in many]

    def predict(self, weights: Array) -> Array:
        result = _kernels.scores_dense(self.design._X.T, weights, self.columns)
        return result if self.design._rows is None else result[self.design._rows]


def _unit_stride(X: NDArray[Any], axis: int) -> bool:
    return X.shape[axis] == 1 or X.strides[axis] == X.itemsize
