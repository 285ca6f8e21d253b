"""Cubic: products of up to three inputs as columns that are never stored, searched exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.convert import as_design
from atomlearn.core.data.scores import ArrayScores, largest
from atomlearn.core.interfaces import Array, Block, Columns, Design, Rows, Scores
from atomlearn.core.problem.checks import positive
from atomlearn.maps.settings import SETTINGS

#: Multiplications of a search beyond which a pass would take minutes: it is refused.
MOST_WORK = 2e12
#: Columns up to which all scores are kept once made.
MOST_KEPT = 2**22


class Cubic(Design):
    """The degree-3 polynomial map of X: all products of one, two or three inputs.

    Columns are those of (gamma x'y + r)^3 without its constant: sqrt(m) u_i u_j u_k for i <= j <= k
    with u = (sqrt r, sqrt(gamma) x), m the number of orders of (i, j, k). First the inputs, then
    the pairs in lexicographic order, then the triples.

    Parameters
    ----------
    X : array, sparse array, table or Design, shape (n_samples, d)
        Held in memory as a dense float64 array.
    gamma, r : float > 0
        Scale of the map, and of its lower degrees.

    Notes
    -----
    A search for the best columns multiplies every triple: n d^3 / 3 operations and O(d^2) memory.
    For 1,000 samples that is a second at d = 300 and half a minute at d = 1,000 on two cores;
    beyond 2e12 operations (d = 1,800) it is refused. Degree 2 (``Polynomial``) costs a factor of d
    less, and skips what bounds exclude.

    References
    ----------
    [T] Tan, Tsang, Wang 2014, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import Cubic
    >>> design = Cubic(np.array([[1.0, 2.0], [3.0, 1.0]]))
    >>> design.shape, design.triple(8), design.triple(2)
    ((2, 9), (1, 1, 1), (0, 0, -1))
    """

    def __init__(self, X: object, gamma: float = 1.0, r: float = 1.0) -> None:
        base = as_design(X)
        self.gamma = positive("Cubic: gamma", gamma, "the scale of the map")
        self.r = positive("Cubic: r", r, "the scale of lower degrees")
        n, d = base.shape
        if n * float(d + 1) ** 3 / 3.0 > MOST_WORK:
            raise ValueError(
                f"Cubic: {d} inputs of {n} samples have {math.comb(d + 3, 3) - 1:,} products: a "
                f"search takes {n * float(d + 1) ** 3 / 3.0:.0e} operations a pass (at most "
                f"{MOST_WORK:.0e}); select inputs first, for example by FeatureGenerator with "
                "features='polynomial', or use designs.Polynomial for pairs"
            )
        inputs = np.asarray(base.gather(np.arange(d)).dense(), dtype=np.float64)
        constant = np.full((n, 1), math.sqrt(self.r))
        self._inputs = np.asfortranarray(np.hstack([constant, math.sqrt(self.gamma) * inputs]))
        width = np.arange(d + 1, 0, -1, dtype=np.int64)
        #: Where the products begin whose first factor is u_i; the constant's is the first.
        self._starts = np.concatenate([[0], np.cumsum(width * (width + 1) // 2)])

    @property
    def shape(self) -> tuple[int, int]:
        return self._inputs.shape[0], int(self._starts[-1]) - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @property
    def listable(self) -> bool:
        return self.shape[1] <= SETTINGS.most_listed

    def scores(self, v: Array) -> Scores:
        scores = CubicScores(self, np.array(v, dtype=np.float64))
        return ArrayScores(scores.full()) if self.shape[1] <= MOST_KEPT else scores

    def pieces(self, v: Array) -> Iterator[tuple[int, Array]]:
        """Yield the first column with each first factor, and the scores of all of them."""
        U, starts = self._inputs, self._starts
        for i in range(U.shape[1]):
            rest = U[:, i:]
            j, k = np.triu_indices(rest.shape[1])
            own = rest * (U[:, i] * v)[:, None]
            z = (own.T @ rest)[j, k] * orders(np.full(j.size, i), j + i, k + i)
            yield (0, z[1:]) if i == 0 else (int(starts[i]) - 1, z)

    def gather(self, columns: Columns) -> Block:
        i, j, k = self._places(columns)
        U = self._inputs
        return DenseBlock(np.asfortranarray(U[:, i] * U[:, j] * U[:, k] * orders(i, j, k)))

    def with_rows(self, rows: Rows) -> Cubic:
        some = Cubic.__new__(Cubic)
        some.gamma, some.r, some._starts = self.gamma, self.r, self._starts
        some._inputs = np.asfortranarray(self._inputs[rows])
        return some

    def triple(self, column: int) -> tuple[int, int, int]:
        """Return the inputs of a column, increasing, -1 after the last for fewer than three."""
        if not 0 <= column < self.shape[1]:
            raise IndexError(f"Cubic: column {column} is not one of 0 .. {self.shape[1] - 1}")
        places = [int(x[0]) - 1 for x in self._places(np.array([column]))]
        inputs = [place for place in places if place >= 0]
        first, second, third = (*inputs, -1, -1)[:3]
        return first, second, third

    def column(self, *inputs: int) -> int:
        """Return the column of the product of one, two or three inputs."""
        d = self._inputs.shape[1] - 1
        if not (1 <= len(inputs) <= 3 and all(0 <= one < d for one in inputs)):
            raise IndexError(f"Cubic: needs 1 to 3 inputs of 0 .. {d - 1}, got {inputs}")
        i, j, k = sorted([-1] * (3 - len(inputs)) + list(inputs))
        i, j, k = i + 1, j + 1, k + 1
        m, row = d + 1 - i, j - i
        return int(self._starts[i] + row * m - row * (row - 1) // 2 + (k - j) - 1)

    def _places(self, columns: Columns) -> tuple[Columns, Columns, Columns]:
        """Return the three factors of each column, as columns of U."""
        number = np.asarray(columns, dtype=np.int64) + 1
        i = np.searchsorted(self._starts, number, side="right") - 1
        rest, m = number - self._starts[i], self._inputs.shape[1] - i
        row = ((2 * m + 1 - np.sqrt((2.0 * m + 1) ** 2 - 8.0 * rest)) / 2).astype(np.int64)
        # A root of doubles may be one off.
        row -= (row * m - row * (row - 1) // 2 > rest).astype(np.int64)
        row += ((row + 1) * m - (row + 1) * row // 2 <= rest).astype(np.int64)
        j = i + row
        return i, j, j + rest - (row * m - row * (row - 1) // 2)


class CubicScores(Scores):
    """z = X'v for a ``Cubic`` of very many columns: made for one first factor after the other.

    That is O(d^2) at a time. Those that ``top`` finds are summed again as ``at`` does.
    """

    def __init__(self, design: Cubic, v: Array) -> None:
        self.design, self.v = design, v

    @property
    def n_columns(self) -> int:
        return self.design.shape[1]

    def top(self, count: int) -> tuple[Columns, Array]:
        count = min(int(count), self.n_columns)
        columns, values = np.zeros(0, dtype=np.int64), np.zeros(0)
        for first, z in self.design.pieces(self.v):
            least = abs(values[-1]) if values.size == count and count else 0.0
            near = np.flatnonzero(np.abs(z) >= least)
            columns = np.concatenate([columns, first + near])
            columns, values = largest(columns, np.concatenate([values, z[near]]), count)
        return largest(columns, self.at(columns), count)

    def at(self, columns: Columns) -> Array:
        return self.design.gather(columns).transpose_dot(self.v) if columns.size else np.zeros(0)

    def full(self) -> Array:
        if not self.design.listable:
            return super().full()
        return np.concatenate([z for _, z in self.design.pieces(self.v)])


def orders(i: Columns, j: Columns, k: Columns) -> Array:
    """Return sqrt of the number of orders of (i, j, k): 1, 3 or 6."""
    equal = (i == j).astype(np.int64) + (j == k)
    return np.asarray(np.sqrt(np.array([6.0, 3.0, 1.0]))[equal])
