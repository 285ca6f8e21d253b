"""X as an array: both orders, both precisions, any strides, read-only and memory-mapped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.designs.blocks import DenseBlock
from atomlearn.designs.scores import ArrayScores
from atomlearn.interfaces.design import Array, Columns, Design, Scores


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
    Sums are accumulated in float64 whatever the dtype of X.
    """

    __slots__ = ("_X", "_rows")

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

    @property
    def shape(self) -> tuple[int, int]:
        n_rows = self._X.shape[0] if self._rows is None else self._rows.shape[0]
        return n_rows, self._X.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._X.dtype

    def scores(self, v: Array) -> Scores:
        return ArrayScores(_kernels.scores_dense(self._X, v, self._rows))

    def gather(self, columns: Columns) -> DenseBlock:
        return DenseBlock(_kernels.gather_dense(self._X, columns, self._rows))

    def predict(self, weights: Array) -> Array:
        """Return X w for a dense w: one pass."""
        return _kernels.predict_dense(self._X, weights, self._rows)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 for every column: one pass."""
        return _kernels.squared_norms_dense(self._X, curvature, self._rows)

    def with_rows(self, rows: NDArray[np.int64]) -> DenseDesign:
        """Return the design of these rows of this one, without copying X."""
        return DenseDesign(self._X, rows if self._rows is None else self._rows[rows])
