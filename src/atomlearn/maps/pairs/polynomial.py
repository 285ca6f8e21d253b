"""Polynomial: inputs, squares and products of two inputs as columns that are never stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn._support import positive
from atomlearn.core import (
    LIMITS,
    Array,
    ArrayScores,
    Block,
    Columns,
    Design,
    RowSubset,
    Scores,
    SparseDesign,
    Traits,
    as_design,
    feature_names,
    scaled_design,
)
from atomlearn.maps.feature_map import FeatureMap, MappedDesign
from atomlearn.maps.features import FeatureEntry, explicit
from atomlearn.maps.pairs.device import device_pairs
from atomlearn.maps.pairs.index import PairIndex, upper_part
from atomlearn.maps.pairs.products import DensePairs, PairProducts
from atomlearn.maps.pairs.scores import (
    Memory,
    PolynomialScores,
    Scaling,
    all_scores,
    can_be_listed,
    scale_pairs,
)
from atomlearn.maps.pairs.search import PairWork
from atomlearn.maps.pairs.sparse import SparsePairs
from atomlearn.maps.settings import SETTINGS


@dataclass(frozen=True)
class PolynomialMap(FeatureMap):
    """Feature map to inputs, squares and products of two inputs.

    ``index`` numbers the columns, and ``scaling`` has their factors.
    """

    implicit = True
    has_pairs = True

    index: PairIndex
    scaling: Scaling

    @classmethod
    def interactions(cls, n_inputs: int, squares: bool = False) -> PolynomialMap:
        """Return the map to ``n_inputs`` inputs x_j and their products x_i x_j, all unscaled.

        ``squares`` adds the columns x_j^2. The polynomial kernel (gamma <x, x'> + r)^2 has these
        factors of inputs and products for gamma = r = 1/sqrt(2).
        """
        return cls(PairIndex(n_inputs, squares), Scaling(1.0, 1.0, 1.0))

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.index.n_inputs

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.index.n_columns

    def apply(self, X: object) -> Polynomial:
        """Return the columns of new rows X as a design."""
        return Polynomial.from_map(X, self)

    def inputs_of(self, terms: ArrayLike) -> Columns:
        """Return the inputs (i, j) of each term: j = i for a square, j = -1 for an input."""
        return np.stack(self.index.pairs(self.index.checked(terms)), axis=1)

    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return ``dose``, ``dose^2`` or ``age:dose`` for each column."""
        return self.index.names(self.index.checked(columns), names)

    def column_groups(self, groups: Any = None) -> Any:
        """Return None, since each product is a term; raise ValueError for groups of inputs."""
        if groups is not None:
            raise ValueError(
                "groups are of columns of X, and products of two are selected here; leave groups "
                "out, or use features='linear'"
            )


class Polynomial(MappedDesign):
    """The degree-2 polynomial map of X: d inputs become d + d (d + 1) / 2 implicit columns.

    Columns are sqrt(2 gamma r) x_j, gamma x_j^2 and sqrt(2) gamma x_i x_j (i < j), so that the
    product of two rows is (gamma x'y + r)^2 - r^2 [1]_. The map's constant r is not a column,
    because the intercept (``intercept=True``), which is not penalized, replaces it.

    Parameters
    ----------
    X : array, sparse array, table or Design, shape (n_samples, d)
        See ``as_design``; d is at most 2^31. A design such as ``Standardized(X)`` is expanded to
        products of its columns.
    gamma, r : float > 0
        Scale of the map and of its linear part.
    interaction_only : bool, default=False
        Leave the squares out.

    Attributes
    ----------
    base : Design
        X.
    index : PairIndex
        The numbering of the columns.
    scaling : Scaling
        The factors of the columns.
    work : PairWork
        Work that all searches for best columns so far did and skipped.

    Notes
    -----
    Columns 0 .. d-1 are the inputs; then come the pairs in lexicographic order, (0, 0), (0, 1),
    ..., (0, d-1), (1, 1), ... and without squares (0, 1), (0, 2), ..., (1, 2), ... ``pair`` decodes
    a column and ``column`` encodes a pair, both in O(1).

    ``scores(v)`` makes one pass over X. For dense X, ``top`` and ``full`` then take n d^2 / 2
    multiplications, fewer if bounds exclude inputs. For sparse X with nnz_k entries in row k, they
    take sum_k nnz_k^2 / 2. Up to 2^28 columns can be listed (``scores(v).full()``,
    ``squared_norms``, ``predict``); beyond that norms that need only the best columns (l1,
    k-support) work.

    Sparse X is stored by columns and, after the first search for best columns, by rows, in addition
    to the given array. Nearly full sparse X is processed in dense pieces.

    For a tensor (``OnDevice``, also standardized or with fewer rows) the device computes tiles of
    sums and compares them with a threshold. Pairs that pass are summed on the processor, so that
    the answer is the same. Sparse tensors with fewer than 1% nonzero entries are copied to the
    processor once, and searched there, because nearly all products in tiles would be zero.

    References
    ----------
    .. [1] M. Tan, I. W. Tsang, L. Wang, "Towards ultrahigh dimensional feature selection for big
       data", JMLR 15 (2014), section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import Polynomial
    >>> X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> design = Polynomial.interactions(X)
    >>> columns, values = design.scores(np.array([1.0, 0.0])).top(2)
    >>> [design.pair(column) for column in columns], values
    ([(1, 2), (2, -1)], array([6., 3.]))
    >>> design.feature_names(columns, ["age", "sex", "dose"])
    ['sex:dose', 'dose']
    """

    map: PolynomialMap

    def __init__(
        self, X: object, gamma: float = 1.0, r: float = 1.0, interaction_only: bool = False
    ) -> None:
        """Check the scales, and number the columns; X is read as a design."""
        remedy = "Polynomial.interactions(X) has all scales 1"
        gamma = positive("gamma", gamma, remedy)
        r = positive("r", r, remedy)
        scaling = Scaling(math.sqrt(2.0 * gamma * r), gamma, math.sqrt(2.0) * gamma)
        base = as_design(X)
        index = PairIndex(base.shape[1], not interaction_only)
        self._set(base, PolynomialMap(index, scaling), feature_names(X))

    @classmethod
    def interactions(cls, X: object, squares: bool = False) -> Polynomial:
        """Return the design of main effects x_j and products x_i x_j, i < j, all unscaled.

        ``squares`` adds the columns x_j^2. This means gamma = r = 1/sqrt(2), with squares of factor
        1.
        """
        base = as_design(X)
        return cls.from_map(X, PolynomialMap.interactions(base.shape[1], squares), base)

    @classmethod
    def from_map(cls, X: object, map: PolynomialMap, base: Design | None = None) -> Polynomial:
        """Return the design of new rows X of the inputs of ``map``; ``base`` is X as a Design."""
        base = as_design(X) if base is None else base
        if base.shape[1] != map.n_inputs:
            raise ValueError(f"X has {base.shape[1]} columns, but the map is of {map.n_inputs}")
        design = cls.__new__(cls)
        design._set(base, map, feature_names(X))
        return design

    def _set(self, base: Design, map: PolynomialMap, names: list[str] | None) -> None:
        """Set the attributes: the inputs ``base``, the map, and the names of the inputs."""
        self.base = base
        self.map = map
        self._names = names
        self.index = map.index
        self.scaling = map.scaling
        self.shape = (base.shape[0], self.index.n_columns)
        self.dtype = base.dtype
        self._pairs = _products(base)
        self._memory = Memory()
        is_small = base.listable and self.index.n_columns <= SETTINGS.listed_together
        self.traits = Traits(reads_at_once=is_small and base.traits.reads_at_once)

    @property
    def listable(self) -> bool:
        """Whether arrays with one entry for each input and pair fit into memory."""
        return self.base.listable and can_be_listed(self.index)

    @property
    def searched(self) -> tuple[float, float]:
        """Return the number of products formed by searches, and of those without bounds."""
        return self.work.products, self.work.possible

    @property
    def work(self) -> PairWork:
        """Return the counts of products that searches formed."""
        return self._memory.work

    def scores(self, v: Array) -> PolynomialScores:
        """Return the scores X'v of all columns."""
        return PolynomialScores(self._pairs, self.index, self.scaling, v, self._memory)

    def scores_many(self, V: Array) -> Sequence[Scores]:
        """Return the scores of each column of V (n_samples, m).

        If columns are few enough to list, this takes one pass over X. Otherwise there is a
        search for each vector, which skips products that its bounds exclude.
        """
        if not self.traits.reads_at_once:
            return super().scores_many(V)
        linear = np.array([z.full() for z in self.base.scores_many(V)])
        Z = all_scores(self._pairs, linear * self.scaling.linear, self.index, self.scaling, V)
        return [ArrayScores(z) for z in Z]

    def gather(self, columns: Columns) -> Block:
        """Return the columns with these numbers as a block."""
        i, j = self.index.pairs(columns)
        return self._pairs.block(i, j, self.scaling.of(i, j))

    def _squares(self, weights: Array) -> Array:
        """Return the weighted squared norm sum_k w_k phi_kj^2 of each column j, w = ``weights``."""
        if not self.listable:
            return super()._squares(weights)
        d = self.index.n_inputs
        norms = np.empty(self.index.n_columns)
        norms[:d] = self.base.squared_norms(weights) * self.scaling.linear**2
        norms[d:] = self._pairs.all_sums(weights[:, None], self.index, squared=True)[0]
        scale_pairs(norms, self.index, self.scaling, power=2)
        return norms

    def with_rows(self, rows: NDArray[np.int64]) -> Polynomial:
        """Return the map of these rows; sparse rows are copied, dense ones read in place."""
        return self._with_base(_rows_of(self.base, rows))

    def _with_base(self, base: Design) -> Polynomial:
        """Return the design of the inputs ``base``, with the same map."""
        other = type(self).__new__(type(self))
        other._set(base, self.map, self._names)
        return other

    def scaled(self, factors: Array) -> Polynomial:
        """Return the map of X diag(factors), with one factor for each input; sparse X is copied."""
        return self._with_base(scaled_design(self.base, np.asarray(factors)))

    # --- columns and their names ----------------------------------------------------------------

    def pair(self, column: int) -> tuple[int, int]:
        """Return (i, j) of the column x_i x_j; i = j for a square, j = -1 for the input x_i."""
        i, j = self.pairs(np.array([column]))
        return int(i[0]), int(j[0])

    def pairs(self, columns: ArrayLike) -> tuple[Columns, Columns]:
        """Return the arrays i and j of the columns x_i x_j; j = -1 for an input x_i."""
        return self.index.pairs(self.index.checked(columns))

    def column(self, i: int, j: int = -1) -> int:
        """Return the number of the column x_i x_j, in either order; j = -1 means the input x_i."""
        return int(self.columns_of(np.array([i]), np.array([j]))[0])

    def columns_of(self, i: ArrayLike, j: ArrayLike) -> Columns:
        """Return the number of the column x_i x_j for each pair (i, j); j = -1 means x_i."""
        first, second = np.broadcast_arrays(_integers("i", i), _integers("j", j))
        linear = second == -1
        small, large = upper_part(first, np.where(linear, first, second))
        d = self.index.n_inputs
        if ((small < 0) | (large >= d)).any():
            raise IndexError(f"pairs must name inputs between 0 and {d - 1}, or j = -1 for x_i")
        if not self.index.squares and ((small == large) & ~linear).any():
            raise ValueError(
                "this design has no squares; make it with interaction_only=False, or "
                "Polynomial.interactions(X, squares=True)"
            )
        return self.index.columns(small, np.where(linear, -1, large))


def _products(base: Design) -> PairProducts:
    """Return the object that computes products of two columns of ``base``.

    It is for sparse data, for data on a device, or for dense data. Nearly full sparse X is
    processed as dense, which is faster.
    """
    X = base.stored()
    if (
        base.traits.is_sparse
        and X is not None
        and X.nnz < LIMITS.blas_from * base.shape[0] * base.shape[1]
    ):
        return SparsePairs(base)
    return device_pairs(base) or DensePairs(base)


def _rows_of(base: Design, rows: NDArray[np.int64]) -> Design:
    """Return these rows of the design ``base``: a copy if it is sparse, else a view."""
    X = base.stored() if base.traits.is_sparse else None
    return RowSubset(base, rows) if X is None else SparseDesign(X[rows])


def _integers(name: str, values: ArrayLike) -> Columns:
    """Return ``values`` as int64; raise TypeError, which mentions ``name``, for other types."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers, got dtype {array.dtype}")
    return array.astype(np.int64)


#: The entries of ``features=``: products without squares, with squares, and scaled as in [T].
INTERACTIONS = FeatureEntry(
    PolynomialMap, lambda X, weight: Polynomial.interactions(explicit(X), squares=False)
)
QUADRATIC = FeatureEntry(
    PolynomialMap, lambda X, weight: Polynomial.interactions(explicit(X), squares=True)
)
POLYNOMIAL = FeatureEntry(
    PolynomialMap,
    lambda X, weight, gamma=1.0, r=1.0: Polynomial(explicit(X), gamma=gamma, r=r),
    ("gamma", "r"),
)
