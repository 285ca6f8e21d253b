"""The features that are selected from: columns of the file, and products of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.data.parts import ColumnSubset
from atomlearn.core.interfaces import Design
from atomlearn.designs import as_design
from atomlearn.estimators.units import MOST_LISTED
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.polynomial import Polynomial


@dataclass(frozen=True, slots=True)
class Features:
    """What is selected from.

    X : (n_samples, n_inputs) array or sparse matrix; names of its columns;
    interactions : whether all products of two columns are features, too: (0, 0), (0, 1), ...,
    (p, p) after the columns. They are never stored. kept : those of them that are features, where
    some are left out (squares of 0/1 columns, which are those columns), else None.
    """

    X: Any
    names: list[str]
    interactions: bool = False
    kept: NDArray[np.int64] | None = None

    @property
    def n_features(self) -> int:
        """Number of features: p, or p + p (p + 1) / 2 less those left out."""
        if self.kept is not None:
            return int(self.kept.size)
        return self._index.n_columns if self.interactions else len(self.names)

    @property
    def _index(self) -> PairIndex:
        return PairIndex(len(self.names), squares=True)

    def design(self) -> Design:
        """Return the features as a design."""
        if not self.interactions:
            return as_design(self.X)
        products = Polynomial.interactions(self.X, squares=True)
        return products if self.kept is None else ColumnSubset(products, self.kept)

    def _column(self, index: int) -> int:
        return index if self.kept is None else int(self.kept[index])

    def factors(self, index: int) -> tuple[int, ...]:
        """Return the one or two columns of the file that feature ``index`` is the product of."""
        column = self._column(index)
        if column < len(self.names):
            return (column,)
        i, j = self._index.pairs(self._index.checked([column]))
        return int(i[0]), int(j[0])

    def name(self, index: int) -> str:
        """Return ``a``, ``a^2`` or ``a:b``."""
        column = self._column(index)
        if column < len(self.names):
            return self.names[column]
        return self._index.names(self._index.checked([column]), self.names)[0]


def with_interactions(X: Any, names: list[str]) -> Features:
    """Return columns and products, squares of 0/1 columns left out where products can be listed."""
    index = PairIndex(len(names), squares=True)
    binary = _binary(X)
    if not binary.size or index.n_columns > MOST_LISTED:
        return Features(X, names, True)
    kept = np.delete(np.arange(index.n_columns), index.columns(binary, binary))
    return Features(X, names, True, kept)


def _binary(X: Any) -> NDArray[np.int64]:
    """Return the columns that hold 0 and 1 only."""
    if is_sparse(X):
        entries = X.tocsc()
        other = np.add.reduceat(
            np.append(entries.data != 1, False), np.minimum(entries.indptr[:-1], entries.nnz)
        )
        return np.flatnonzero((other == 0) | (np.diff(entries.indptr) == 0))
    return np.flatnonzero([bool(np.isin(X[:, j], (0, 1)).all()) for j in range(X.shape[1])])
