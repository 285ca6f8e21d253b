"""Design: the data matrix X, accessed only by scores z = X'v and by gathering some columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import Array, Columns, OwnMethods, Rows
from atomlearn.core.interfaces.scores import Scores, affine_scores


class RowAccess:
    """Access to the rows of a design, which by default are in this process.

    A design whose rows are on other machines overrides ``sent`` and ``summed``. The latter returns
    an equivalent problem over sums of rows, whose predictions are the coefficients. The design of
    that problem overrides the other methods: they request the sums over rows that a proof needs.

    Attributes
    ----------
    sent : (int, int)
        Number of requests to other machines so far, and bytes of requests and answers.
    """

    sent: tuple[int, int] = (0, 0)

    def summed(self, problem: Any) -> Any:
        """Return the problem over sums of rows, or ``problem`` itself if sums do not suffice."""
        return problem

    def prefetch(self, predictions: Sequence[Array]) -> None:
        """Send ``predictions`` at several points to the rows in one request.

        Later requests at these points then need no further message.
        """

    def restrict(self, problem: Any, block: Any) -> Any:
        """Return the restricted ``problem`` over the columns of ``block``.

        It uses the same remote rows.
        """
        return problem

    def intercept(self, prediction: Array) -> float | None:
        """Return the optimal intercept inside the loss at ``prediction``; None if there is none."""
        return None

    def reported(self, result: Any) -> Any:
        """Return the finished ``result`` in the original columns if the fit centered them."""
        return result

    def over_rows(
        self, design: Any, columns: Columns, prediction: Array
    ) -> tuple[Array, float, int] | None:
        """Return the column norms, the norm of the slopes of the loss, and the number of rows.

        All are over the remote rows, for these ``columns`` of ``design`` and the slopes at
        ``prediction``. None if the rows are in this process.
        """
        return None


@dataclass(frozen=True, slots=True)
class Traits:
    """How a design stores its columns: a design declares those that differ from the defaults.

    Attributes
    ----------
    reads_at_once : bool
        ``scores_many`` and ``scores_above`` read the data once for all vectors. By default they
        call ``scores`` for each vector.
    is_sparse : bool
        X is stored by its non-zero entries, which centering its columns would fill.
    matrix_shape : (p, q), optional
        The columns are the entries of a matrix W, row after row.
    n_distinct : int, optional
        Number of distinct columns, if overlapping groups repeat some of them.
    keeps_gram : bool
        For blocks: the columns are stored as numbers, so that a Gram matrix takes one fast product
        and is worth caching.
    bytes_an_entry : float
        For blocks: memory of an entry; less than 1 if entries are packed in bits.
    couples_by_structure : bool
        For blocks: the Gram matrix A'(diag(c) - K K')A of ``coupled_gram`` is computed without a
        dense copy of A, so that larger blocks are solved.
    """

    reads_at_once: bool = False
    is_sparse: bool = False
    matrix_shape: tuple[int, int] | None = None
    n_distinct: int | None = None
    keeps_gram: bool = False
    bytes_an_entry: float = 8.0
    couples_by_structure: bool = False


class Design(OwnMethods, ABC):
    """The data X with ``n_samples`` rows and ``n_features`` columns, in memory or elsewhere.

    A subclass must define ``shape``, ``dtype``, ``scores`` and ``gather``. The other methods have
    defaults that are right for every design; a subclass overrides those that it can do faster.

    Examples
    --------
    The rows of the identity, of which nothing is stored:

    >>> import numpy as np
    >>> from atomlearn.interfaces import ArrayScores
    >>> from atomlearn.interfaces import DenseBlock
    >>> from atomlearn.interfaces import Design
    >>> class Unit(Design):
    ...     shape, dtype = (4, 4), np.dtype(np.float64)
    ...     def scores(self, v):
    ...         return ArrayScores(v)
    ...     def gather(self, columns):
    ...         return DenseBlock(np.eye(4)[:, columns])
    >>> Unit().predict(np.array([0.0, 2.0, 0.0, 1.0]))
    array([0., 2., 0., 1.])
    """

    #: (n_samples, n_features); n_features may be too large for an array of this length.
    shape: tuple[int, int]
    #: float32 or float64: the precision of the data.
    dtype: np.dtype[Any] = np.dtype(np.float64)

    @abstractmethod
    def scores(self, v: Array) -> Scores:
        """Return z = X'v: one pass over the data. ``v`` is float64 of shape (n_samples,)."""

    @abstractmethod
    def gather(self, columns: Columns) -> Block:
        """Return the given ``columns``, in their order, as a Block held in memory."""

    #: The defaults below gather this many entries (8 MB) at a time, whatever the size of X.
    _gathered_entries = 2**20
    #: The largest number of columns over which the default ``squared_norms`` loops; more would take
    #: minutes.
    _walked_columns = 2**22

    # --- products that have an answer for every design ------------------------------------------

    @property
    def names(self) -> list[str] | None:
        """The names of the columns, or None."""
        return None

    @property
    def listable(self) -> bool:
        """Whether an array of n_features numbers, and a loop over all columns, are affordable.

        By default True if the design overrides ``squared_norms`` or has few columns. Implicit
        columns, such as products of inputs, may be too many; they are searched, not listed.
        """
        has_own_norms = type(self).squared_norms is not Design.squared_norms
        return has_own_norms or self.shape[1] <= self._walked_columns

    #: How the columns are stored; see ``Traits``.
    traits: Traits = Traits()
    #: Access to the rows; rows on other machines are summed there, and only the sums are sent.
    row_access: RowAccess = RowAccess()

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of each column of ``V`` (n_samples, m), as ``scores`` would."""
        return [self.scores(np.ascontiguousarray(v)) for v in V.T]

    def scores_above(
        self, V: Array, bounds: Array, affine: tuple[Array, Array] | None = None
    ) -> Sequence[Scores]:
        r"""Return the scores Z = X'V of the columns of ``V`` (n_samples, m); only large ones.

        A search for large scores may skip most columns. The scores z_jk of column j are known for
        all k if \|z_jk\| >= bounds_k > 0 for some k; ``bounds`` are (m,). Access to other scores
        raises LookupError. By default all scores are known.

        affine : means and factors, each (n_features,): the columns are (x_j - means_j) factors_j.
        """
        scores = self.scores_many(V)
        return scores if affine is None else affine_scores(scores, V, affine)

    def predict(self, weights: Array) -> Array:
        """Return X w, shape (n_samples,), for w = ``weights`` (n_features,): at most one pass.

        By default the columns with a nonzero weight are gathered, a bounded number at a time.
        """
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (self.shape[1],):
            raise ValueError(f"weights must have shape ({self.shape[1]},), got {weights.shape}")
        support = np.flatnonzero(weights)
        return self.product(weights[support][:, None], support)[:, 0]

    def product(self, W: Array, columns: Columns | None = None) -> Array:
        """Return X W (n_samples, t) for W (n_features, t), in float64.

        With S = ``columns`` it is X_S W for W (len(S), t).
        """
        result = np.zeros((self.shape[0], W.shape[1]))
        # One column of W at a time; with ``columns``, also a bounded number of columns of X.
        if columns is None:
            for out_column, w in zip(result.T, W.T, strict=True):
                out_column[:] = self.predict(np.ascontiguousarray(w))
            return result
        for positions in self._bounded(np.arange(columns.size)):
            block = self.gather(columns[positions])
            for out_column, w in zip(result.T, W[positions].T, strict=True):
                out_column += block.predict(np.ascontiguousarray(w))
        return result

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 of every column j, c = ``curvature`` (None: 1): one pass."""
        return self._squares(np.ones(self.shape[0]) if curvature is None else curvature)

    def _squares(self, weights: Array) -> Array:
        """Return sum_i c_i x_ij^2 of each column j, c = ``weights``; a few columns at a time."""
        if not self.listable:
            raise TypeError(
                f"{type(self).__name__} does not list its {self.shape[1]} columns; standardize the "
                "data it is made of instead, and use ColumnGeneration, which asks for the best "
                "columns only"
            )
        result = np.empty(self.shape[1])
        for columns in self._bounded(np.arange(self.shape[1])):
            result[columns] = self.gather(columns).squared_norms(weights)
        return result

    def _bounded(self, columns: Columns) -> list[Columns]:
        """Return ``columns`` in pieces that can be gathered with little memory."""
        width = max(1, self._gathered_entries // max(self.shape[0], 1))
        return [columns[start : start + width] for start in range(0, columns.size, width)]

    # --- parts of it ----------------------------------------------------------------------------

    def with_rows(self, rows: Rows) -> Self | None:
        """Return the design of these ``rows``, in their order, repeats allowed, without copying X.

        None if the design has no such method; ``part_of`` then pads v with zeros and passes over
        all rows. The row numbers must have been checked.
        """
        return None

    def subtracted_offsets(self, columns: Columns) -> Array:
        """Return the offsets subtracted from the scores of ``columns`` after summation.

        They are in the units of the columns. Scores lose digits in proportion to them, which the
        bound on rounding includes.
        """
        return np.zeros(columns.size)

    def stored(self) -> Any:
        """Return X itself, for read-only use, if it is one array in memory; else None.

        An array that BLAS reads in place, or a CSC or CSR array of SciPy's if ``traits.is_sparse``.
        """
        return None

    @property
    def searched(self) -> tuple[float, float]:
        """The work of searches so far, and the work that searches without bounds would have done.

        Both count multiplications for implicit columns, and columns for nested groups.
        """
        return 0.0, 0.0


class Block(Design):
    """A few columns of X in memory, for which masters solve. Products are in float64.

    A block is also a design, whose scores are cheap. So the problem restricted to these columns is
    a ``Problem`` over a block. ``gather`` returns some of the columns, as a copy or a view.
    ``np.asarray(block)`` is the dense (n_samples, n_columns) array.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import as_design
    >>> block = as_design(np.diag([1.0, -3.0, 2.0])).gather(np.array([2, 1]))
    >>> block.predict(np.array([1.0, 1.0])), block.gram(np.ones(3))
    (array([ 0., -3.,  2.]), array([[4., 0.],
           [0., 9.]]))
    """

    @abstractmethod
    def predict(self, weights: Array) -> Array:
        """Return A w, shape (n_samples,), for the columns A of the block and w = ``weights``."""

    @abstractmethod
    def gram(self, curvature: Array, positions: Columns | None = None) -> Array:
        """Return A_S' diag(curvature) A_S, float64, for the columns A and S = ``positions``.

        ``curvature`` is (n_samples,); ``positions`` None: all columns.
        """

    @abstractmethod
    def append(self, other: Block) -> Block:
        """Return the block of these columns followed by those of ``other``.

        Amortised O(columns added): a block may keep spare room and share it with its successor.
        """

    @abstractmethod
    def dense(self) -> Array:
        """Return the dense (n_samples, n_columns) array in Fortran order; read-only use.

        The dtype is float64, or float32 if that represents the columns exactly.
        """

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights``."""
        return np.asarray(weights @ np.square(self.dense(), dtype=np.float64))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return a copy of the columns as a dense array of type ``dtype``."""
        return np.array(self.dense(), dtype=dtype)
