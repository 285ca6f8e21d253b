"""Scores as a norm of non-negative coefficients sees them: their positive part."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Scores


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
        """Return at most ``count`` columns: fewer where the others have no positive score."""
        asked = 2 * count + 16
        while True:
            columns, values = self._base.top(asked)
            positive = np.flatnonzero(values > 0)[:count]
            # Beyond a zero, or beyond the last column, there is nothing positive left.
            if positive.size == count or values.size < asked or values[-1] == 0:
                return columns[positive], values[positive]
            asked = 8 * asked

    def at(self, columns: Columns) -> Array:
        return np.maximum(self._base.at(columns), 0.0)

    def full(self) -> Array:
        return np.maximum(self._base.full(), 0.0)
