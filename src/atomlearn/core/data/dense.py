"""DenseDesign: X as an array in any memory order, float32 or float64, also memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Columns, Design, Scores, Traits
from atomlearn.core.interfaces.scores import ArrayScores


class DenseDesign(Design):
    """z = X'v for a float32 or float64 array, which is never cast or written to.

    Parameters
    ----------
    X : ndarray, shape (n_samples_stored, n_features)
        float32 or float64 in native byte order; ``as_design`` converts other types once.
    rows : ndarray of int64, optional
        The rows to use, in this order (repeats allowed): X is then read through them.

    Notes
    -----
    Sums are accumulated in float64 whatever the dtype of X. An array of which neither rows nor
    columns are contiguous, such as ``X[::2, ::3]``, is copied once.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.dense import DenseDesign
    >>> design = DenseDesign(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> design.scores(np.array([1.0, -1.0])).top(1)
    (array([0]), array([-2.]))
    """

    def __init__(self, X: NDArray[Any], rows: NDArray[np.int64] | None = None) -> None:
        """Check the array, and copy it only if kernels cannot read it in place."""
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            raise ValueError(
                f"DenseDesign needs a 2-d NumPy array, got {type(X).__name__} of shape "
                f"{np.shape(X)}; as_design(X) converts tables and lists"
            )
        if X.dtype.char not in "fd" or not X.dtype.isnative or not X.flags.aligned:
            raise ValueError(
                f"DenseDesign needs aligned float32 or float64 data in native byte order, got "
                f"dtype {X.dtype}; as_design(X) converts it once"
            )
        # Convert to a plain ndarray: subclasses (memmap, matrix) index differently.
        self._X: NDArray[Any] = X.view(np.ndarray)
        # Neither rows nor columns are contiguous.
        if X.itemsize not in X.strides and 1 not in X.shape:
            self._X = np.ascontiguousarray(self._X)
        self._rows = None if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
        n_rows = self._X.shape[0] if self._rows is None else self._rows.shape[0]
        self.shape = (n_rows, self._X.shape[1])
        self.dtype = self._X.dtype

    @property
    def array(self) -> NDArray[Any]:
        """The array that was given, of which ``rows`` may select some; it must not be modified."""
        return self._X

    def stored(self) -> Any:
        """Return X for read-only use, if BLAS can read all of it in place; else None."""
        return self._X if self._rows is None else None

    def scores(self, v: Array) -> Scores:
        """Return the scores z = X'v of all columns, for v (n_samples,)."""
        return ArrayScores(_kernels.scores_dense(self._X, v, self._rows))

    traits = Traits(reads_at_once=True)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v for each column v of V (n_samples, m), by one pass."""
        return [ArrayScores(z) for z in _kernels.many_dense(self._X, V, self._rows)]

    def gather(self, columns: Columns) -> DenseBlock:
        """Return the columns with these numbers as a block: a copy, unless X is that block."""
        X = self._X
        if X.flags.f_contiguous and self._rows is None and columns.size == X.shape[1]:
            return DenseBlock(X).gather(columns)
        return DenseBlock(_kernels.gather_dense(self._X, columns, self._rows, self._X.dtype))

    def predict(self, weights: Array) -> Array:
        """Return X w, (n_samples,), for a dense w = ``weights``: one pass."""
        return _kernels.predict_dense(self._X, weights, self._rows)

    def product(self, W: Array, columns: Columns | None = None) -> Array:
        """Return X W (n_samples, t), or X_S W for S = ``columns``.

        It is computed by BLAS, a bounded number of rows at a time, so that a float32 X is never
        converted as a whole.
        """
        X = self.stored()
        if X is None or columns is not None:
            return super().product(W, columns)
        pieces = (X[rows] for rows in LIMITS.pieces(*X.shape))
        return np.concatenate([piece.astype(np.float64, copy=False) @ W for piece in pieces])

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 of each column j, c = ``curvature`` (None: ones): one pass."""
        return _kernels.scores_dense(self._X, curvature, self._rows, squared=True)

    def with_rows(self, rows: NDArray[np.int64]) -> Self:
        """Return the design of these ``rows`` of this one, without copying X."""
        subset = copy(self)
        DenseDesign.__init__(subset, self._X, rows if self._rows is None else self._rows[rows])
        return subset
