"""Cubic: products of up to three inputs, as columns that are never stored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from atomlearn._support import positive
from atomlearn.core import (
    Array,
    ArrayScores,
    Block,
    Columns,
    DenseBlock,
    DenseDesign,
    Rows,
    Scores,
    as_design,
    dense_part,
    feature_names,
)
from atomlearn.maps.feature_map import FeatureMap, MappedDesign
from atomlearn.maps.features import FeatureEntry, explicit
from atomlearn.maps.settings import SETTINGS


@dataclass(frozen=True)
class CubicMap(FeatureMap):
    """Feature map to products of up to three of d inputs, see ``Cubic``.

    The map is that of the kernel (gamma x'y + r)^3. The products are u_i u_j u_k for i <= j <= k,
    with u_0 a constant and u_1, ..., u_d the scaled inputs.
    """

    implicit = True
    has_pairs = True

    d: int
    gamma: float
    r: float

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.d

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return math.comb(self.d + 3, 3) - 1

    @cached_property
    def starts(self) -> Columns:
        """Number of the first product with u_i as first factor; u_0 is the constant."""
        width = np.arange(self.d + 1, 0, -1, dtype=np.int64)
        return np.concatenate([[0], np.cumsum(width * (width + 1) // 2)])

    def apply(self, X: object) -> Cubic:
        """Return the columns of new rows X as a design."""
        return Cubic.from_map(X, self)

    def inputs_of(self, terms: ArrayLike) -> Columns:
        """Return the inputs of each product (n_terms, 3), increasing, then -1 as padding."""
        sorted_inputs = np.sort(
            np.stack(self.factors(np.asarray(terms, dtype=np.int64)), axis=1) - 1
        )
        n_factors = (sorted_inputs >= 0).sum(axis=1)
        # The constant is input -1. Each row is rotated, so that the constants come last.
        positions = (np.arange(3) - n_factors[:, None]) % 3
        return np.asarray(np.take_along_axis(sorted_inputs, positions, axis=1))

    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return ``dose``, ``age:dose``, ``age^2:dose`` or ``dose^3`` for each column."""
        input_names = self.named_inputs(names)
        result = []
        for inputs in self.inputs_of(columns).tolist():
            powers = Counter(input_names[i] for i in inputs if i >= 0)
            parts = (name if power == 1 else f"{name}^{power}" for name, power in powers.items())
            result.append(":".join(parts))
        return result

    def column_groups(self, groups: Any = None) -> Any:
        """Return None, since each product is a term; raise ValueError for groups of inputs."""
        if groups is not None:
            raise ValueError(
                "groups are of columns of X, and products of them are selected here; leave groups "
                "out, or use features='linear'"
            )

    def factors(self, columns: Columns) -> tuple[Columns, Columns, Columns]:
        """Return the factors i <= j <= k of each column u_i u_j u_k; u_0 is the constant.

        Within the products of first factor i, those of second factor i + row begin at the offset
        row * m - row * (row - 1) / 2, with m = d + 1 - i. The row of a product is the largest one
        that begins at its offset or before: the rounded root of a quadratic equation.
        """
        # Number 0 is the product of three constants, which is no column.
        number = columns + 1
        i = np.searchsorted(self.starts, number, side="right") - 1
        offset = number - self.starts[i]
        m = self.d + 1 - i
        row = ((2 * m + 1 - np.sqrt((2.0 * m + 1) ** 2 - 8.0 * offset)) / 2).astype(np.int64)
        # The floating-point root may differ by one.
        row -= (row * m - row * (row - 1) // 2 > offset).astype(np.int64)
        row += ((row + 1) * m - (row + 1) * row // 2 <= offset).astype(np.int64)
        j = i + row
        return i, j, j + offset - (row * m - row * (row - 1) // 2)


class Cubic(MappedDesign):
    """The degree-3 polynomial map of X: all products of one, two or three inputs.

    Columns are those of (gamma x'y + r)^3 without its constant: sqrt(m) u_i u_j u_k for i <= j <=
    k. Here u = (sqrt r, sqrt(gamma) x), and m is the number of orders of (i, j, k). First come the
    inputs, then the pairs in lexicographic order, then the triples.

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

    map: CubicMap

    def __init__(self, X: object, gamma: float = 1.0, r: float = 1.0) -> None:
        """Check the parameters and the number of products, and copy X."""
        base = as_design(X)
        gamma = positive("Cubic: gamma", gamma, "the scale of the map")
        r = positive("Cubic: r", r, "the scale of lower degrees")
        d = base.shape[1]
        if math.comb(d + 3, 3) > SETTINGS.most_listed:
            raise ValueError(
                f"Cubic: {d} inputs have {math.comb(d + 3, 3) - 1:,} products, at most "
                f"{SETTINGS.most_listed:,} are listed; select inputs first, for example by "
                "FeatureGenerator with features='polynomial', or use designs.Polynomial for pairs"
            )
        self._set(dense_part(base, np.arange(d)), CubicMap(d, gamma, r), feature_names(X))

    @classmethod
    def from_map(cls, X: object, map: CubicMap) -> Cubic:
        """Return the design of new rows X of the inputs of ``map``."""
        base = as_design(X)
        if base.shape[1] != map.d:
            raise ValueError(f"X has {base.shape[1]} columns, but the map is of {map.d} inputs")
        design = cls.__new__(cls)
        design._set(dense_part(base, np.arange(map.d)), map, feature_names(X))
        return design

    def _set(self, inputs: Array, map: CubicMap, names: list[str] | None) -> None:
        """Set the attributes: the inputs (n_samples, d), the map, and the names of the inputs."""
        self.map = map
        self._names = names
        self.base = DenseDesign(np.asfortranarray(inputs))
        constant = np.full((inputs.shape[0], 1), math.sqrt(map.r))
        self._inputs = np.asfortranarray(np.hstack([constant, math.sqrt(map.gamma) * inputs]))
        self.shape = inputs.shape[0], map.n_columns

    @property
    def gamma(self) -> float:
        """Scale of the map."""
        return self.map.gamma

    @property
    def r(self) -> float:
        """Scale of the lower degrees."""
        return self.map.r

    @property
    def listable(self) -> bool:
        """Whether arrays with one entry for each column fit into memory."""
        return True

    def scores(self, v: Array) -> Scores:
        """Return Phi'v: one matrix product for each first factor i gives all j, k >= i.

        The first score is that of the constant, and is left out.
        """
        U = self._inputs
        z = []
        for i in range(U.shape[1]):
            # Entry (j, k) of the product is the sum of v u_i u_j u_k over samples.
            later = U[:, i:]
            j, k = np.triu_indices(later.shape[1])
            products = later * (U[:, i] * v)[:, None]
            z.append((products.T @ later)[j, k] * orders(np.full(j.size, i), j + i, k + i))
        return ArrayScores(np.concatenate(z)[1:])

    def gather(self, columns: Columns) -> Block:
        """Return the columns sqrt(m) u_i u_j u_k as a dense block.

        u_0 is a constant, u_1, ..., u_d are the scaled inputs, and m is the number of
        orders of (i, j, k).
        """
        i, j, k = self.map.factors(np.asarray(columns, dtype=np.int64))
        U = self._inputs
        return DenseBlock(np.asfortranarray(U[:, i] * U[:, j] * U[:, k] * orders(i, j, k)))

    def with_rows(self, rows: Rows) -> Cubic:
        """Return the design restricted to these rows."""
        return self._with_inputs(dense_part(self.base, np.arange(self.map.d))[rows])

    def scaled(self, factors: Array) -> Cubic:
        """Return the map of X diag(factors), with one factor for each input."""
        return self._with_inputs(dense_part(self.base, np.arange(self.map.d)) * factors)

    def _with_inputs(self, inputs: Array) -> Cubic:
        """Return the design of these inputs (n_samples, d), with the same map."""
        other = type(self).__new__(type(self))
        other._set(inputs, self.map, self._names)
        return other

    def triple(self, column: int) -> tuple[int, int, int]:
        """Return the inputs of a column in increasing order, padded with -1 to three."""
        if not 0 <= column < self.shape[1]:
            raise IndexError(f"Cubic: column {column} is not one of 0 .. {self.shape[1] - 1}")
        first, second, third = self.map.inputs_of([column])[0].tolist()
        return first, second, third

    def column(self, *inputs: int) -> int:
        """Return the column of the product of one, two or three inputs."""
        d = self.map.d
        if not (1 <= len(inputs) <= 3 and all(0 <= each < d for each in inputs)):
            raise IndexError(f"Cubic: needs 1 to 3 inputs of 0 .. {d - 1}, got {inputs}")
        # Missing inputs are constants, input -1; factors are inputs plus 1. See ``factors``.
        i, j, k = sorted([-1] * (3 - len(inputs)) + list(inputs))
        i = i + 1
        j = j + 1
        k = k + 1
        m = d + 1 - i
        row = j - i
        return int(self.map.starts[i] + row * m - row * (row - 1) // 2 + (k - j) - 1)


def orders(i: Columns, j: Columns, k: Columns) -> Array:
    """Return the square root of the number of orders of (i, j, k), which is 1, 3 or 6.

    i <= j <= k are arrays of factors.
    """
    # Three different factors have 6 orders, two equal ones 3, and three equal ones 1.
    n_equal = (i == j).astype(np.int64) + (j == k)
    return np.asarray(np.sqrt(np.array([6.0, 3.0, 1.0]))[n_equal])


#: The entry of ``features="cubic"``.
CUBIC = FeatureEntry(
    CubicMap,
    lambda X, weight, gamma=1.0, r=1.0: Cubic(explicit(X), gamma=gamma, r=r),
    ("gamma", "r"),
)
