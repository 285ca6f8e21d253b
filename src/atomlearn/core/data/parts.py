"""Views of designs: subsets of rows, of columns, or of both, without copying X."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn._support import spread_rows
from atomlearn.core.data.centered import chosen_rows
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.interfaces import Array, Block, Columns, Design, Rows, Scores
from atomlearn.core.interfaces.forwarding import Derived, Forwarding
from atomlearn.core.interfaces.scores import ArrayScores


def part_of(
    design: Design, rows: ArrayLike | None = None, columns: ArrayLike | None = None
) -> Design:
    """Return some rows and some columns of any design: a view if it has one.

    Parameters
    ----------
    design : Design
        The data matrix X.
    rows : array of int, or boolean mask, optional
        In any order, repeats allowed. None: all of them.
    columns : array of int, optional
        In increasing order, without repeats. None: all of them.

    Returns
    -------
    Design
        Of the selected rows and columns, without a copy of X.

    Notes
    -----
    If the design cannot select rows itself (``with_rows`` is None), scores of some rows take a pass
    over all rows, with v = 0 at the other rows. Scores of some columns are selected from the scores
    of all columns.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.parts import part_of
    >>> from atomlearn.designs import as_design
    >>> X = np.arange(12.0).reshape(3, 4)
    >>> part_of(as_design(X), rows=[2, 0], columns=[1, 3]).gather(np.array([0, 1])).dense()
    array([[ 9., 11.],
           [ 1.,  3.]])
    """
    if rows is not None:
        design = RowSubset(design, rows)
    return design if columns is None else ColumnSubset(design, columns)


def dense_part(design: Design, columns: Columns) -> Array:
    """Return some columns of the design as a float64 array, (n_samples, len(columns))."""
    return np.asarray(design.gather(columns).dense(), dtype=np.float64)


class RowSubset(Forwarding):
    """Some rows of a design, in any order, repeats allowed, without copying X.

    Parameters
    ----------
    design : Design
        The data matrix X.
    rows : array of int, or boolean mask of length n_samples
        The rows to keep, in this order.

    Notes
    -----
    Designs that have ``with_rows`` read X through the row numbers. For others, v is padded with
    zeros for the other rows, and a full pass is made.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.dense import DenseDesign
    >>> from atomlearn.designs import RowSubset
    >>> RowSubset(DenseDesign(np.eye(3)), [2, 0]).scores(np.array([5.0, 7.0])).full()
    array([7., 0., 5.])
    """

    def __init__(self, design: Design, rows: ArrayLike) -> None:
        """Select ``rows`` by the view of the design, or by padded vectors if it has none."""
        self.design = design
        self.rows = check_rows(rows, design.shape[0])
        view = design.with_rows(self.rows)
        super().__init__(SpreadRows(design, self.rows) if view is None else view)

    @property
    def names(self) -> list[str] | None:
        """The names of the columns, or None if they have none."""
        return self.design.names


class SpreadRows(Derived):
    """A row subset of a design without ``with_rows``: v is padded with zeros for other rows."""

    def __init__(self, design: Design, rows: Rows) -> None:
        """Store the design and the numbers ``rows``, which have been checked."""
        super().__init__(design)
        self.rows = rows
        self.shape = self.rows.shape[0], self.design.shape[1]

    def scores(self, v: Array) -> Scores:
        """Return the scores z = X'v of all columns, for v at the rows of this design."""
        return self.design.scores(spread_rows(v, self.rows, self.design.shape[0]))

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v for each column v of V (n_rows, m)."""
        return self.design.scores_many(spread_rows(V, self.rows, self.design.shape[0]))

    def scores_above(
        self, V: Array, bounds: Array, affine: tuple[Array, Array] | None = None
    ) -> Sequence[Scores]:
        """Return the large scores X'v for each column v of V (n_rows, m), by one pass.

        A column has large scores if the magnitude of its score reaches the entry of ``bounds`` (m,)
        for some v. affine : means and factors (n_features,) of transformed columns,
        (x_j - mean_j) factor_j, whose scores are then returned.
        """
        return self.design.scores_above(
            spread_rows(V, self.rows, self.design.shape[0]), bounds, affine
        )

    def gather(self, columns: Columns) -> Block:
        """Return these columns at the rows of this design, gathered in pieces."""
        # In pieces, because these columns with all rows may not fit into memory.
        width = max(1, LIMITS.most_dense // self.design.shape[0])
        parts = np.split(columns, range(width, columns.size, width))
        blocks = (chosen_rows(self.design.gather(part), self.rows) for part in parts)
        return reduce(lambda block, more: block.append(more), blocks)

    def product(self, W: Array, columns: Columns | None = None) -> Array:
        """Return X W at the rows of this design, or X_S W for S = ``columns``, (n_rows, t)."""
        return self.design.product(W, columns)[self.rows]

    def subtracted_offsets(self, columns: Columns) -> Array:
        """Return the offsets that are subtracted from the scores of ``columns``, (len(columns),).

        They are the offsets of the design with all rows. Scores lose digits in proportion to them.
        """
        return self.design.subtracted_offsets(columns)

    def predict(self, weights: Array) -> Array:
        """Return X w at the rows of this design, (n_rows,), for w = ``weights``."""
        return self.design.predict(weights)[self.rows]

    def _squares(self, weights: Array) -> Array:
        """Return sum_i w_i x_ij^2 of each column j, for w = ``weights`` (n_rows,)."""
        return self.design.squared_norms(spread_rows(weights, self.rows, self.design.shape[0]))


class ColumnSubset(Derived):
    """Some columns of a design, in increasing order, without a copy of X. A pass reads all columns.

    Parameters
    ----------
    design : Design
        The data matrix X.
    columns : array of int64, increasing
        The columns to keep; column i of this design is ``columns[i]`` of the other.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.core.data.dense import DenseDesign
    >>> from atomlearn.core import ColumnSubset
    >>> half = ColumnSubset(DenseDesign(np.eye(4)), [1, 3])
    >>> half.scores(np.array([1.0, 2.0, 3.0, 4.0])).full()
    array([2., 4.])
    """

    def __init__(self, design: Design, columns: ArrayLike) -> None:
        """Store the design and the numbers ``columns``, after a check."""
        super().__init__(design)
        self.columns = check_columns(columns, design.shape[1])
        self.shape = self.design.shape[0], self.columns.size

    @property
    def names(self) -> list[str] | None:
        """The names of the columns, or None if they have none."""
        names = self.design.names
        return None if names is None else [names[column] for column in self.columns.tolist()]

    @property
    def listable(self) -> bool:
        """Whether arrays with one entry for each column of this design fit into memory."""
        return self.design.listable or self.shape[1] <= self._walked_columns

    def scores(self, v: Array) -> Scores:
        """Return the scores z = X'v of the columns of this design, for v (n_samples,)."""
        return self._scores_of_columns(self.design.scores(v))

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores X'v for each column v of V (n_samples, m)."""
        return [self._scores_of_columns(z) for z in self.design.scores_many(V)]

    def _scores_of_columns(self, z: Scores) -> Scores:
        """Return the scores of the columns of this design, selected from the scores z of X."""
        return ArrayScores(np.ascontiguousarray(z.at(self.columns)))

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers in this design as a block."""
        return self.design.gather(self.columns[columns])

    def subtracted_offsets(self, columns: Columns) -> Array:
        """Return the offsets that are subtracted from the scores of these columns."""
        return self.design.subtracted_offsets(self.columns[columns])

    def predict(self, weights: Array) -> Array:
        """Return X w, (n_samples,), for w = ``weights``, one for each column of this design."""
        if not self.design.listable:
            return super().predict(weights)
        dense = np.zeros(self.design.shape[1])
        dense[self.columns] = weights
        return self.design.predict(dense)

    def squared_norms(self, curvature: Array | None = None) -> Array:
        """Return sum_i c_i x_ij^2 of each column j, for c = ``curvature`` (None: ones)."""
        if not self.design.listable:
            return super().squared_norms(curvature)
        return self.design.squared_norms(curvature)[self.columns]

    def with_rows(self, rows: Rows) -> ColumnSubset | None:
        """Return the same columns of these ``rows``; None if the design cannot select rows."""
        view = self.design.with_rows(rows)
        return None if view is None else ColumnSubset(view, self.columns)


def check_rows(rows: ArrayLike, n_samples: int) -> Rows:
    """Return ``rows``, numbers or a boolean mask (n_samples,), as int64 numbers.

    Raises ValueError if they are invalid or none are left.
    """
    numbers = np.asarray(rows)
    if numbers.dtype == np.bool_ and numbers.shape == (n_samples,):
        numbers = np.flatnonzero(numbers)
    remedy = f"or a boolean mask of length {n_samples}"
    if numbers.shape == (0,) and numbers.dtype.kind in "iu":
        raise ValueError("rows is empty; keep at least one row")
    return _numbers("row", numbers, n_samples, remedy)


def check_columns(columns: ArrayLike, n_features: int) -> Columns:
    """Return the increasing column numbers ``columns`` as int64.

    Raises ValueError if they do not increase, or are not in [0, n_features).
    """
    remedy = "np.flatnonzero(mask) of a mask"
    numbers = _numbers("column", np.asarray(columns), n_features, remedy)
    if (numbers[1:] <= numbers[:-1]).any():
        raise ValueError("columns must increase, without repeats; pass np.unique(columns)")
    return numbers


def _numbers(kind: str, numbers: NDArray[Any], limit: int, remedy: str) -> NDArray[np.int64]:
    """Return row or column numbers in [0, limit) as int64; raise ValueError for others.

    kind : "row" or "column", and remedy : the end of a message; both are for errors.
    """
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"{kind}s must be a 1-d array of {kind} numbers, {remedy}; got {numbers.dtype} of "
            f"shape {numbers.shape}"
        )
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, limit - 1)
    if low < 0 or high >= limit:
        raise ValueError(
            f"{kind}s must be between 0 and {limit - 1}, got values from {low} to {high}"
        )
    return numbers.astype(np.int64, copy=False)
