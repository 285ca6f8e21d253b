"""ArrayScores: scores that are stored, the only kind that norms make themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.core.interfaces.design import Array, Columns, Scores


class ArrayScores(Scores):
    """z held as one array, shape (n_columns,), float64."""

    __slots__ = ("_z",)

    def __init__(self, z: Array) -> None:
        self._z = z

    @property
    def n_columns(self) -> int:
        return int(self._z.shape[0])

    def top(self, count: int) -> tuple[Columns, Array]:
        if count <= 0 or not self.n_columns:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        columns, values = _kernels.top_magnitude(self._z, min(int(count), self.n_columns))
        return columns, values

    def at(self, columns: Columns) -> Array:
        return self._z[columns]

    def full(self) -> Array:
        """Return all of z: the stored array itself, so read-only use."""
        return self._z

    def group_norms(self, labels: NDArray[np.int64], n_groups: int) -> Array:
        return _kernels.group_norms(self._z, labels, n_groups)
