"""The features that are selected from: columns of the file, and products of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atomlearn.core.interfaces import Design
from atomlearn.designs import as_design
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.polynomial import Polynomial


@dataclass(frozen=True, slots=True)
class Features:
    """What is selected from.

    X : (n_samples, n_inputs) array or sparse matrix; names of its columns;
    interactions : whether all products of two columns are features, too: (0, 0), (0, 1), ...,
    (p, p) after the columns. They are never stored.
    """

    X: Any
    names: list[str]
    interactions: bool = False

    @property
    def n_features(self) -> int:
        """Number of features: p, or p + p (p + 1) / 2."""
        return self._index.n_columns if self.interactions else len(self.names)

    @property
    def _index(self) -> PairIndex:
        return PairIndex(len(self.names), squares=True)

    def design(self) -> Design:
        """Return the features as a design."""
        if self.interactions:
            return Polynomial.interactions(self.X, squares=True)
        return as_design(self.X)

    def factors(self, index: int) -> tuple[int, ...]:
        """Return the one or two columns of the file that feature ``index`` is the product of."""
        if index < len(self.names):
            return (index,)
        i, j = self._index.pairs(self._index.checked([index]))
        return int(i[0]), int(j[0])

    def name(self, index: int) -> str:
        """Return ``a``, ``a^2`` or ``a:b``."""
        if index < len(self.names):
            return self.names[index]
        return self._index.names(self._index.checked([index]), self.names)[0]
