"""SparseDesign: X as a CSC or CSR array with 32- or 64-bit indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.data.blocks import DenseBlock, SparseBlock
from atomlearn.core.data.compressed import checked_parts, is_sparse, take_compressed
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns, Design, Scores, Traits
from atomlearn.core.interfaces.scores import ArrayScores


class SparseDesign(Design):
    """z = X'v for a SciPy CSC or CSR array or matrix, which is not copied.

    The structure is checked before any arithmetic, so broken arrays raise ValueError instead of
    reading foreign memory. Unsorted indices are sorted, and duplicate entries summed, in a copy
    that is made only if there are any.

    Data in CSR (``_by_columns`` is False) is converted to CSC once, when columns or several scores
    at a time are requested: each search for a column in CSR would take as long as a pass.

    Parameters
    ----------
    X : CSC or CSR array or matrix, (n_samples, n_features)
        float32 or float64; ``as_design`` converts other types and formats.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csc_array
    >>> from atomlearn.core.data.sparse import SparseDesign
    >>> design = SparseDesign(csc_array(np.array([[1.0, 0.0], [0.0, 4.0]])))
    >>> design.squared_norms(), design.nonzeros
    (array([ 1., 16.]), 2)
    """

    traits = Traits(is_sparse=True, reads_at_once=True)

    def __init__(self, X: Any) -> None:
        """Check the structure of X, and copy it only if it has unsorted or duplicate indices."""
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
        #: X in CSC format if X is in CSR, made when it is first needed.
        self._csc: SparseDesign | None = None
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = X.dtype
        LIMITS.check_columns(self.shape[1])
        data, indices, indptr = checked_parts(X)
        self._data = data
        self._indices = indices
        self._indptr = indptr
        # SciPy finds out whether indices are sorted and distinct.
        view = self.stored()
        if not view.has_canonical_format:
            merged = view.copy()
            merged.sum_duplicates()
            self._data, self._indices, self._indptr = checked_parts(merged)
        # If X is dense enough, all blocks are dense, so that blocks can be appended.
        self._full = self.nonzeros >= LIMITS.dense_from * self.shape[0] * self.shape[1]

    @property
    def nonzeros(self) -> int:
        """Number of stored entries."""
        return int(self._data.shape[0])

    def stored(self) -> sp.csc_array | sp.csr_array:
        """Return X as a SciPy array that shares memory with the design and must not be modified."""
        container = sp.csc_array if self._by_columns else sp.csr_array
        X = container(self.shape, dtype=self._data.dtype)
        # The attributes are set one by one, because the constructor would copy 64-bit indices that
        # fit into 32 bits.
        X.data, X.indices, X.indptr = self._parts
        return X

    @property
    def _parts(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The entries, their row (or column) indices, and the pointers of the compressed format."""
        return self._data, self._indices, self._indptr

    def scores(self, v: Array) -> Scores:
        """Return the scores z = X'v of all columns, for v (n_samples,)."""
        return ArrayScores(self._transposed(v))

    def _transposed(self, v: Array, squared: bool = False) -> Array:
        """Return X'v, or (X * X)'v if ``squared``, (n_features,), for v (n_samples,).

        If the design has X in CSC format, this is read, because it takes fewer writes.
        """
        columns = self if self._by_columns else self._csc
        if columns is not None:
            return _kernels.sparse_dots(*columns._parts, v, squared)
        return _kernels.sparse_sums(*self._parts, v, self.shape[1], squared)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v for each column v of V (n_samples, m), from the CSC format."""
        # Reading X by rows would scatter the sums of many vectors over the whole result.
        return [ArrayScores(z) for z in _kernels.many_csc(*self._columns()._parts, V)]

    def _columns(self) -> SparseDesign:
        """Return X in CSC format; an X in CSR format is converted once and kept."""
        if self._by_columns:
            return self
        if self._csc is None:
            self._csc = SparseDesign(self.stored().tocsc())
        return self._csc

    def predict(self, weights: Array) -> Array:
        """Return X w, (n_samples,), for a dense w = ``weights``: one pass."""
        if self._by_columns:
            return _kernels.sparse_sums(*self._parts, weights, self.shape[0])
        return _kernels.sparse_dots(*self._parts, weights)

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights`` (n_samples,)."""
        return self._transposed(weights, squared=True)

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block.

        It is a dense block if X is dense enough (``_full``), else a sparse one; the columns do not
        matter.
        """
        parts = take_compressed(*self._columns()._parts, columns)
        return block_of_entries(parts, self.shape[0], self._full)


def block_of_entries(
    parts: tuple[Array, NDArray[Any], NDArray[Any]], n_samples: int, full: bool
) -> Block:
    """Return gathered columns as a dense block if ``full``, else as a sparse one.

    parts : entries, row indices and column pointers; n_samples : the number of rows. full : whether
    X is so dense that all its blocks are dense.
    """
    block = SparseBlock(*parts, n_samples)
    return DenseBlock(block.dense()) if full else block


def identity(size: int) -> SparseDesign:
    """Return X = I of a given size: its predictions are the coefficients themselves."""
    return SparseDesign(sp.eye_array(size, format="csc"))
