"""The features that are selected from: columns of the file, and products of two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.data.parts import ColumnSubset
from atomlearn.core.interfaces import Columns, Design
from atomlearn.estimators.units import MOST_LISTED
from atomlearn.maps.feature_map import FeatureMap, Inputs
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.polynomial import PolynomialMap


@dataclass(frozen=True)
class Kept(FeatureMap):
    """Some columns of a map of products, numbered anew."""

    implicit = True
    has_pairs = True

    whole: FeatureMap
    columns: Columns

    @property
    def n_inputs(self) -> int:
        return self.whole.n_inputs

    @property
    def n_columns(self) -> int:
        return int(self.columns.size)

    def apply(self, X: object) -> Design:
        return ColumnSubset(self.whole.apply(X), self.columns)

    def inputs_of(self, terms: ArrayLike) -> Columns:
        return self.whole.inputs_of(self.columns[np.asarray(terms)])

    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        return self.whole.names(self.columns[np.asarray(columns)], names)

    def term_names(self, terms: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        return self.names(terms, names)


@dataclass(frozen=True, slots=True)
class Features:
    """What is selected from: X, (n_samples, n_inputs), the names of its columns, and their map.

    Products are never stored; squares of 0/1 columns, which are those columns, may be left out.
    """

    X: Any
    names: list[str]
    map: FeatureMap

    @property
    def n_features(self) -> int:
        """Number of features: p, or p + p (p + 1) / 2 less those left out."""
        return self.map.n_columns

    @property
    def interactions(self) -> bool:
        """Whether products are among them."""
        return self.map.has_pairs

    def design(self) -> Design:
        """Return the features as a design."""
        return self.map.apply(self.X)

    def factors(self, index: int) -> tuple[int, ...]:
        """Return the one or two columns of the file that feature ``index`` is the product of."""
        return tuple(int(column) for column in self.map.inputs_of([index])[0] if column >= 0)

    def name(self, index: int) -> str:
        """Return ``a``, ``a^2`` or ``a:b``."""
        return self.map.term_names([index], self.names)[0]


def plain(X: Any, names: list[str]) -> Features:
    """Return the columns as they are."""
    return Features(X, names, Inputs(len(names)))


def with_products(X: Any, names: list[str]) -> Features:
    """Return columns, then products: (0, 0), (0, 1), ..., (p, p)."""
    return Features(X, names, PolynomialMap.interactions(len(names), squares=True))


def with_interactions(X: Any, names: list[str]) -> Features:
    """Return columns and products, squares of 0/1 columns left out where products can be listed."""
    binary, whole, index = _binary(X), with_products(X, names), PairIndex(len(names), squares=True)
    if not binary.size or index.n_columns > MOST_LISTED:
        return whole
    kept = np.delete(np.arange(index.n_columns), index.columns(binary, binary))
    return Features(X, names, Kept(whole.map, kept))


def _binary(X: Any) -> NDArray[np.int64]:
    """Return the columns that hold 0 and 1 only."""
    if is_sparse(X):
        entries = X.tocsc()
        other = np.add.reduceat(
            np.append(entries.data != 1, False), np.minimum(entries.indptr[:-1], entries.nnz)
        )
        return np.flatnonzero((other == 0) | (np.diff(entries.indptr) == 0))
    return np.flatnonzero([bool(np.isin(X[:, j], (0, 1)).all()) for j in range(X.shape[1])])
