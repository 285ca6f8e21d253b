"""FoundScores: the large scores of several vectors, all that a reading has kept."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Scores


class FoundScores(Scores):
    """z_j at the columns that were found, which are all with \\|z_j\\| >= ``bound``.

    Parameters
    ----------
    columns : (f,) int64, increasing
    values : (f,) float64
    bound : float
    n_columns : int
        Number of all columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> z = FoundScores(np.array([2, 5]), np.array([1.0, -3.0]), 0.9, 100)
    >>> z.top(1), z.at(np.array([2]))
    ((array([5]), array([-3.])), array([1.]))
    """

    __slots__ = ("_bound", "_columns", "_n_columns", "_order", "_values")

    def __init__(self, columns: Columns, values: Array, bound: float, n_columns: int) -> None:
        self._columns, self._values = columns, values
        self._bound, self._n_columns = bound, n_columns
        self._order: Columns = np.argsort(-np.abs(values), kind="stable")

    @property
    def n_columns(self) -> int:
        return self._n_columns

    def _unknown(self, asked: str) -> LookupError:
        return LookupError(
            f"only scores of magnitude {self._bound:.3g} and more were kept, not {asked}; ask the "
            "design for scores_many"
        )

    def top(self, count: int) -> tuple[Columns, Array]:
        places = self._order[: min(int(count), self._n_columns)]
        values = self._values[places]
        few = places.size < min(count, self._n_columns)
        if few or (values.size and abs(values[-1]) < self._bound):
            raise self._unknown(f"the {count} largest")
        return self._columns[places], values

    def above(self, bound: float) -> tuple[Columns, Array]:
        if bound < self._bound:
            raise self._unknown(f"all from {bound:.3g} on")
        places = self._order
        places = places[: np.searchsorted(-np.abs(self._values[places]), -bound, side="right")]
        return self._columns[places], self._values[places]

    def at(self, columns: Columns) -> Array:
        places = np.searchsorted(self._columns, columns)
        inside = np.minimum(places, self._columns.size - 1)
        if columns.size and (not self._columns.size or (self._columns[inside] != columns).any()):
            raise self._unknown("those of each column")
        return self._values[inside] if columns.size else np.zeros(0)
