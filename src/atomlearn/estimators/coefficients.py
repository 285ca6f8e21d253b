"""Coefficient arrays of estimators: dense, or sparse if there are very many implicit columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.core import LIMITS, Array, Columns, is_sparse


def coefficient_rows(
    entries: Sequence[tuple[Columns, Array]], n_columns: int, implicit: bool
) -> Any:
    """Return the coefficient matrix (n_outputs, n_columns) in float64 from its nonzero entries.

    ``entries`` has, for each output, the indices of its columns and their coefficients, (m,) each.
    The result is a dense array, or a csr_array if the columns are ``implicit`` (products that are
    not stored) and more than 2^26. It is float64 because gap and objective hold for these very
    numbers: rounding to float32 can increase the distance to the optimum by a factor of 10,000.
    """
    if implicit and n_columns > LIMITS.most_dense:
        columns = np.concatenate([each[0] for each in entries]).astype(np.int64)
        weights = np.concatenate([each[1] for each in entries])
        starts = np.cumsum([0, *(each[0].size for each in entries)], dtype=np.int64)
        return sp.csr_array((weights, columns, starts), shape=(len(entries), n_columns))
    rows = np.zeros((len(entries), n_columns))
    for row, (columns, weights) in zip(rows, entries, strict=True):
        row[columns] = weights
    return rows


def single_row(rows: Any) -> Any:
    """Return the coefficients of a single output: a vector, or the csr_array with its one row.

    ``rows`` is a result of ``coefficient_rows`` with one row.
    """
    return rows if is_sparse(rows) else rows[0]


def nonzero_coefficients(coef: Any) -> tuple[Columns, Array]:
    """Return the m columns with a nonzero coefficient, and their coefficients (n_outputs, m).

    ``coef`` is a result of ``coefficient_rows``, or one row of it.
    """
    if not is_sparse(coef):
        columns = (coef if coef.ndim == 1 else coef.any(axis=0)).nonzero()[0]
        return columns, np.atleast_2d(coef)[:, columns].astype(np.float64)
    table = coef.tocoo()
    # Slicing is avoided, because it takes memory for all columns.
    entries = np.asarray(table.data, dtype=np.float64)
    is_nonzero = table.data != 0
    columns, positions = np.unique(table.col[is_nonzero].astype(np.int64), return_inverse=True)
    weights = np.zeros((table.shape[0], columns.size))
    weights[table.row[is_nonzero], positions] = entries[is_nonzero]
    return columns, weights


def coefficient_matrix(columns: Columns, weights: Array, shape: tuple[int, int]) -> Any:
    """Return a csr_array of this shape from its m nonzero entries.

    columns : (m,) their row-major positions. weights : (m,) their values.
    """
    # scikit-learn only accepts indices of 32 bits.
    rows, cols = (indices.astype(np.int32) for indices in np.divmod(columns, shape[1]))
    return sp.csr_array(sp.coo_array((weights, (rows, cols)), shape=shape))


class Packed(NamedTuple):
    """An array of mostly zeros: positions of its other entries, their values, and its shape."""

    positions: Columns
    values: NDArray[Any]
    shape: tuple[int, ...]

    def array(self) -> NDArray[Any]:
        """Return the whole array, zeros included."""
        restored = np.zeros(self.shape, dtype=self.values.dtype)
        restored.reshape(-1)[self.positions] = self.values
        return restored


def packed(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state for pickling, in which zeros of numeric arrays are not stored.

    state : attributes by their names.
    """
    return {name: _packed(value) for name, value in state.items()}


def unpacked(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state that was packed by ``packed``, with its arrays restored."""
    return {
        name: value.array() if type(value) is Packed else value for name, value in state.items()
    }


def _packed(value: Any) -> Any:
    """Return an array as ``Packed`` if that takes less memory; other values unchanged.

    ``value`` is any attribute. Zeros with a minus sign count as nonzero, so that the restored array
    is identical.
    """
    if type(value) is not np.ndarray or value.dtype.kind not in "fiub":
        return value
    flat = value.reshape(-1)
    nonzero = np.flatnonzero((flat != 0) | np.signbit(flat) if value.dtype.kind == "f" else flat)
    packed_bytes = nonzero.size * (nonzero.itemsize + value.itemsize)
    # Packing must save at least half of the memory.
    return Packed(nonzero, flat[nonzero], value.shape) if 2 * packed_bytes < value.nbytes else value
