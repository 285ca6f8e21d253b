"""Cubic: products of up to three inputs, as columns that are never stored."""

from __future__ import annotations

import math

import numpy as np

from atomlearn.core import (
    Array,
    ArrayScores,
    Block,
    Columns,
    DenseBlock,
    Design,
    Rows,
    Scores,
    as_design,
    dense_part,
    positive,
)
from atomlearn.maps.settings import SETTINGS


class Cubic(Design):
    """The degree-3 polynomial map of X: all products of one, two or three inputs.

    Columns are those of (gamma x'y + r)^3 without its constant: sqrt(m) u_i u_j u_k for i <= j <= k
    with u = (sqrt r, sqrt(gamma) x), and m the number of orders of (i, j, k). First the inputs,
    then the pairs in lexicographic order, then the triples.

    Parameters
    ----------
    X : array, sparse array, table or Design, shape (n_samples, d)
        Copied into memory as a dense float64 array.
    gamma, r : float > 0
        Scale of the map, and of its lower degrees.

    Notes
    -----
    A pass multiplies every triple: n d^3 / 3 operations, and 8 bytes for each product. For 1,000
    samples it takes a second at d = 300 and half a minute at d = 1,000 on two cores; more than 2^28
    products (d = 1,170) are refused. Degree 2 (``Polynomial``) takes less by a factor of d, and
    skips products that bounds exclude.

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
        if math.comb(d + 3, 3) > SETTINGS.most_listed:
            raise ValueError(
                f"Cubic: {d} inputs have {math.comb(d + 3, 3) - 1:,} products, at most "
                f"{SETTINGS.most_listed:,} are listed; select inputs first, for example by "
                "FeatureGenerator with features='polynomial', or use designs.Polynomial for pairs"
            )
        inputs = dense_part(base, np.arange(d))
        constant = np.full((n, 1), math.sqrt(self.r))
        self._inputs = np.asfortranarray(np.hstack([constant, math.sqrt(self.gamma) * inputs]))
        width = np.arange(d + 1, 0, -1, dtype=np.int64)
        #: Number of the first product with u_i as first factor; u_0 is the constant.
        self._starts = np.concatenate([[0], np.cumsum(width * (width + 1) // 2)])
        self.shape = self._inputs.shape[0], int(self._starts[-1]) - 1

    @property
    def listable(self) -> bool:
        return True

    def scores(self, v: Array) -> Scores:
        U = self._inputs
        z = []
        for i in range(U.shape[1]):
            rest = U[:, i:]
            j, k = np.triu_indices(rest.shape[1])
            own = rest * (U[:, i] * v)[:, None]
            z.append((own.T @ rest)[j, k] * orders(np.full(j.size, i), j + i, k + i))
        return ArrayScores(np.concatenate(z)[1:])

    def gather(self, columns: Columns) -> Block:
        i, j, k = self._places(columns)
        U = self._inputs
        return DenseBlock(np.asfortranarray(U[:, i] * U[:, j] * U[:, k] * orders(i, j, k)))

    def with_rows(self, rows: Rows) -> Cubic:
        some = Cubic.__new__(Cubic)
        some.gamma = self.gamma
        some.r = self.r
        some._starts = self._starts
        some._inputs = np.asfortranarray(self._inputs[rows])
        some.shape = rows.size, self.shape[1]
        return some

    def triple(self, column: int) -> tuple[int, int, int]:
        """Return the inputs of a column in increasing order, padded with -1 to three."""
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
        i = i + 1
        j = j + 1
        k = k + 1
        m = d + 1 - i
        row = j - i
        return int(self._starts[i] + row * m - row * (row - 1) // 2 + (k - j) - 1)

    def _places(self, columns: Columns) -> tuple[Columns, Columns, Columns]:
        """Return the three factors of each column, as columns of U."""
        number = np.asarray(columns, dtype=np.int64) + 1
        i = np.searchsorted(self._starts, number, side="right") - 1
        rest = number - self._starts[i]
        m = self._inputs.shape[1] - i
        row = ((2 * m + 1 - np.sqrt((2.0 * m + 1) ** 2 - 8.0 * rest)) / 2).astype(np.int64)
        # The floating-point root may differ by one.
        row -= (row * m - row * (row - 1) // 2 > rest).astype(np.int64)
        row += ((row + 1) * m - (row + 1) * row // 2 <= rest).astype(np.int64)
        j = i + row
        return i, j, j + rest - (row * m - row * (row - 1) // 2)


def orders(i: Columns, j: Columns, k: Columns) -> Array:
    """Return the square root of the number of orders of (i, j, k), which is 1, 3 or 6."""
    equal = (i == j).astype(np.int64) + (j == k)
    return np.asarray(np.sqrt(np.array([6.0, 3.0, 1.0]))[equal])
