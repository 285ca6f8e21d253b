"""Pool: the likely columns of X, in memory, which all paths over one design share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Block
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.rounding import Lengths
from atomlearn.core.solvers.centered_columns import centered_columns

Array = NDArray[np.float64]
Columns = NDArray[np.int64]


class Pool:
    """Columns that were gathered once; a column keeps its position for good.

    Parameters
    ----------
    problem : Problem
        Its design gives the columns. Large means are taken off them where it has an intercept.

    Attributes
    ----------
    columns : (m,) int64
        Their numbers in X, in the order they came; ``block`` : their data, less the offsets of
        ``lengths``.
    """

    #: Entries of the pool (half a GB in float64), beyond which no column joins it.
    MOST_ENTRIES = 2**26

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.columns: Columns = np.zeros(0, dtype=np.int64)
        self.lengths = Lengths.none()
        self.block: Block = problem.design.gather(self.columns)
        self._sorted: Columns = self.columns
        self._places: Columns = self.columns

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self.columns.size)

    @property
    def room(self) -> int:
        """Number of columns that may still join."""
        return max(self.MOST_ENTRIES // max(self._problem.design.shape[0], 1) - self.size, 0)

    def positions(self, columns: Columns) -> Columns:
        """Return where these columns are, -1 for those that are not in the pool."""
        if not self.size:
            return np.full(columns.size, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._sorted, columns), self.size - 1)
        return np.where(self._sorted[at] == columns, self._places[at], -1)

    def add(self, columns: Columns) -> int:
        """Let the columns join that are not in yet; return how many those were."""
        fresh = np.unique(columns[self.positions(columns) < 0])
        if not fresh.size:
            return 0
        gathered, lengths = centered_columns(self._problem, fresh)
        self.block = self.block.append(gathered) if self.size else gathered
        self.lengths = self.lengths.append(lengths)
        self.columns = np.concatenate([self.columns, fresh])
        self._places = np.argsort(self.columns, kind="stable")
        self._sorted = self.columns[self._places]
        return int(fresh.size)
