"""Scores as a wrapper norm sees them: their positive part, or those of a few columns."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Scores
from atomlearn.core.interfaces.scores import ArrayScores


class PositiveScores(Scores):
    """max(z, 0), from scores that know their largest *magnitudes* only.

    ``top`` asks for more and more of the largest magnitudes until it has enough positive ones,
    and soon for all of them where they can be stored.
    """

    def __init__(self, base: Scores) -> None:
        self._base = base

    @property
    def n_columns(self) -> int:
        return self._base.n_columns

    def top(self, count: int) -> tuple[Columns, Array]:
        count = max(0, min(count, self.n_columns))
        asked = min(2 * count + 16, self.n_columns)
        while True:
            columns, values = self._base.top(asked)
            positive = values > 0
            # Beyond a zero, or beyond the last column, there is nothing positive left.
            ended = asked == self.n_columns or (values.size > 0 and values[-1] == 0)
            if np.count_nonzero(positive) >= count or ended:
                break
            asked = min(8 * asked, self.n_columns)
        # Zeros fill up to the count that was asked for, as the interface wants it.
        chosen = np.flatnonzero(positive)[:count]
        columns, values = columns[chosen], values[chosen]
        if columns.size < count:
            filling = self._others(columns, count - columns.size)
            columns = np.concatenate([columns, filling])
            values = np.concatenate([values, np.zeros(filling.size)])
        return columns, values

    def _others(self, columns: Columns, count: int) -> Columns:
        """Return the ``count`` smallest column numbers that are not among these."""
        candidates = np.arange(min(self.n_columns, columns.size + count), dtype=np.int64)
        return np.setdiff1d(candidates, columns)[:count]

    def at(self, columns: Columns) -> Array:
        return np.maximum(self._base.at(columns), 0.0)

    def full(self) -> Array:
        return np.maximum(self._base.full(), 0.0)


def subset_scores(base: Scores, columns: Columns) -> ArrayScores:
    """Return z at some columns, numbered 0, 1, ... in their order."""
    return ArrayScores(np.asarray(base.at(columns), dtype=np.float64))
