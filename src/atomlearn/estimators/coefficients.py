"""Coefficient vectors as people receive them: dense, or sparse where implicit columns are many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core import LIMITS, Array, Columns, is_sparse


def coefficient_rows(parts: Sequence[tuple[Columns, Array]], n_columns: int, implicit: bool) -> Any:
    """Return coefficients (n_outputs, n_columns) in float64, given their non-zeros by output.

    They are the numbers that gap and objective are of. In fewer digits they would be those of
    another point, up to 10,000 times farther from the optimum. A dense array; where the columns are
    ``implicit`` and more than 2^26, a csr_array.
    """
    if implicit and n_columns > LIMITS.most_dense:
        columns = np.concatenate([part[0] for part in parts]).astype(np.int64)
        weights = np.concatenate([part[1] for part in parts])
        starts = np.cumsum([0, *(part[0].size for part in parts)], dtype=np.int64)
        return sp.csr_array((weights, columns, starts), shape=(len(parts), n_columns))
    rows = np.zeros((len(parts), n_columns))
    for row, (columns, weights) in zip(rows, parts, strict=True):
        row[columns] = weights
    return rows


def single_row(rows: Any) -> Any:
    """Return the coefficients of the one output: a vector, or the csr_array of one row itself."""
    return rows if is_sparse(rows) else rows[0]


def nonzero_coefficients(coef: Any) -> tuple[Columns, Array]:
    """Return the columns where an output has a coefficient, and those (n_outputs, m), float64.

    ``coef`` : what ``coefficient_rows`` returns, or one row of it.
    """
    if not is_sparse(coef):
        columns = (coef if coef.ndim == 1 else coef.any(axis=0)).nonzero()[0]
        return columns, np.atleast_2d(coef)[:, columns].astype(np.float64)
    table = coef.tocoo()
    # Not by slicing: that takes memory for all columns.
    entries = np.asarray(table.data, dtype=np.float64)
    used = table.data != 0
    columns, places = np.unique(table.col[used].astype(np.int64), return_inverse=True)
    weights = np.zeros((table.shape[0], columns.size))
    weights[table.row[used], places] = entries[used]
    return columns, weights


def coefficient_matrix(columns: Columns, weights: Array, shape: tuple[int, int]) -> Any:
    """Return the matrix with these entries, numbered row after row, as a csr_array."""
    # scikit-learn takes indices of 32 bits only.
    rows, cols = (part.astype(np.int32) for part in np.divmod(columns, shape[1]))
    return sp.csr_array(sp.coo_array((weights, (rows, cols)), shape=shape))


class Packed(NamedTuple):
    """An array of which most entries are 0: places of the others in order, values, shape."""

    places: Columns
    values: NDArray[Any]
    shape: tuple[int, ...]

    def array(self) -> NDArray[Any]:
        """Return the array, entry for entry."""
        whole = np.zeros(self.shape, dtype=self.values.dtype)
        whole.reshape(-1)[self.places] = self.values
        return whole


def packed(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state to pickle whose arrays of numbers take no room for their zeros."""
    return {name: _packed(value) for name, value in state.items()}


def unpacked(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state with the arrays that ``packed`` was given."""
    return {
        name: value.array() if type(value) is Packed else value for name, value in state.items()
    }


def _packed(value: Any) -> Any:
    if type(value) is not np.ndarray or value.dtype.kind not in "fiub":
        return value
    flat = value.reshape(-1)
    places = np.flatnonzero((flat != 0) | np.signbit(flat) if value.dtype.kind == "f" else flat)
    room = 2 * places.size * (places.itemsize + value.itemsize)
    return Packed(places, flat[places], value.shape) if room < value.nbytes else value
