"""FeatureMap: a map from inputs to columns that is independent of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn._support import ranges
from atomlearn.core import Array, Columns, Design, KSupport, as_design

Labels = NDArray[np.int64]


class FeatureMap(ABC):
    """A feature map phi from the inputs (columns of X) to derived columns, grouped by terms.

    A *term* is the unit that is selected, named and plotted: an input, a product, a main effect, a
    pairwise interaction, a kernel. A map contains no data; ``apply`` returns the design of any
    rows.
    The defaults are for maps in which each column is a term.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.designs import Additive
    >>> X = np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 4.0]])
    >>> map = Additive(X, "intersection").map
    >>> map.unit, map.term_of([0, 1, 2]), map.names([0, 1, 2], ["age", "dose"])
    ('inputs', array([0, 0, 1]), ['age>=1', 'age>=2', 'dose>=3'])
    >>> map.apply(X[:2]).shape
    (2, 4)
    """

    #: Name of the terms in messages about ``groups=``; None if each column is a term.
    unit: ClassVar[str | None] = None
    #: Whether some terms have two inputs.
    has_pairs: ClassVar[bool] = False
    #: Whether columns are products, which may be too many to list.
    implicit: ClassVar[bool] = False

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Number of inputs."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of columns, possibly far more than an array can hold."""

    @property
    def n_terms(self) -> int:
        """Number of terms, including those without columns (constant inputs)."""
        return self.n_columns

    @property
    def is_steps(self) -> bool:
        """Whether curves are step functions."""
        return False

    @abstractmethod
    def apply(self, X: object) -> Design:
        """Return the derived columns of new rows X (n_rows, n_inputs) as a design."""

    @abstractmethod
    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return a readable name of each column; ``names`` are those of the inputs."""

    def term_of(self, columns: ArrayLike) -> Columns:
        """Return the number of the term of each column; by default the column itself."""
        return np.asarray(columns, dtype=np.int64)

    @abstractmethod
    def inputs_of(self, terms: ArrayLike) -> Columns:
        """Return the inputs (i, j) of each term: i = j for a square, j = -1 for a single input."""

    def term_names(self, terms: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return a readable name of each term, such as ``age`` or ``age:dose``."""
        return self.names(terms, names)

    def named_inputs(self, names: Sequence[str] | None) -> list[str]:
        """Return the names of the inputs, by default x0, x1, ...; check their number."""
        if names is None:
            return [f"x{j}" for j in range(self.n_inputs)]
        if len(names) != self.n_inputs:
            raise ValueError(f"names must name the {self.n_inputs} inputs, got {len(names)} names")
        return [str(name) for name in names]

    def main_columns(self, inputs: ArrayLike) -> Columns:
        """Return the columns of these single inputs, without products."""
        return np.asarray(inputs, dtype=np.int64)

    def column_groups(self, groups: Any = None) -> Any:
        """Return the group of each column if whole groups of inputs are selected.

        ``groups`` are groups of inputs in the form of ``KSupport``; None means that each term is a
        group. The result is None if each column is a group.
        """
        return groups

    def weights_of_groups(self, weights: ArrayLike) -> Array:
        """Return the weights of groups of columns, given ``weights`` of groups or of terms.

        Here TypeError is raised: a map in which each column is a term has no groups.
        """
        raise TypeError(f"{type(self).__name__} has no groups of columns")

    def curve(self, j: int, weights: Array) -> tuple[Array, Array]:
        """Return the levels of input j and its curve f_j at them, given the weights of all columns.

        Here AttributeError is raised: only additive maps have curves.
        """
        raise AttributeError(
            "curves are those of an additive model; fit with features='splines', or another of "
            "'intersection', 'additive_gaussian', 'additive_chi2', 'anova'"
        )

    def surface(self, i: int, j: int, weights: Array) -> tuple[Array, Array, Array]:
        """Return the levels of inputs i and j, and the surface f_ij at them, from all weights.

        Here AttributeError is raised: only maps of pairs of inputs have surfaces.
        """
        raise AttributeError("surfaces are those of pairs of inputs; fit with features='anova'")


@dataclass(frozen=True)
class Inputs(FeatureMap):
    """phi(x) = x: the columns of X.

    Examples
    --------
    >>> Inputs(3).names([0, 2])
    ['x0', 'x2']
    """

    count: int

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.count

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.count

    def apply(self, X: object) -> Design:
        """Return the columns of new rows X as a design."""
        return as_design(X)

    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return the names of these columns, by default x0, x1, ..."""
        # Only the names of these columns are computed; there may be millions of columns.
        return [f"x{j}" if names is None else str(names[j]) for j in np.asarray(columns).tolist()]

    def inputs_of(self, terms: ArrayLike) -> Columns:
        """Return (j, -1) for each term j, since each term is one input."""
        numbers = np.asarray(terms, dtype=np.int64)
        return np.stack([numbers, np.full_like(numbers, -1)], axis=1)


class TermMap(FeatureMap):
    """A map whose terms have several columns each, with the numbers in ``sizes``."""

    def term_names(self, terms: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return ``age`` or ``age:dose`` for each term."""
        input_names = self.named_inputs(names)
        return [
            input_names[i] if j < 0 else f"{input_names[i]}:{input_names[j]}"
            for i, j in self.inputs_of(terms)
        ]

    @property
    @abstractmethod
    def sizes(self) -> Columns:
        """Number of columns of each term, (n_terms,); 0 for constant inputs."""

    @cached_property
    def starts(self) -> Columns:
        """First column of each term, and the end, (n_terms + 1,).

        The columns of term t are starts[t] .. starts[t + 1] - 1.
        """
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def used(self) -> Columns:
        """The terms that have columns, (n_groups,)."""
        return np.flatnonzero(self.sizes)

    @cached_property
    def groups(self) -> Labels:
        """Group of each column, (n_columns,) in 0..n_groups-1; terms with columns are groups."""
        return np.repeat(np.arange(self.used.size, dtype=np.int64), self.sizes[self.used])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.starts[-1])

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return int(self.sizes.size)

    def term_of(self, columns: ArrayLike) -> Columns:
        """Return the number of the term of each column."""
        numbers = np.asarray(columns, dtype=np.int64)
        terms: Columns = np.searchsorted(self.starts, numbers, side="right") - 1
        return terms

    def main_columns(self, inputs: ArrayLike) -> Columns:
        """Return the columns of the curves of these inputs; the inputs are the first terms."""
        return self.columns_of(inputs)

    def columns_of(self, terms: ArrayLike) -> Columns:
        """Return the columns of these terms, term by term."""
        chosen = np.asarray(terms, dtype=np.int64)
        return ranges(self.starts[chosen], self.sizes[chosen])

    def column_groups(self, groups: Any = None) -> Any:
        """Return the group of each column: its term, or the group of its input in ``groups``.

        Raise ValueError for ``groups`` of inputs if terms are not inputs.
        """
        if groups is None:
            return self.groups
        if self.n_terms != self.n_inputs:
            raise ValueError(
                f"groups are of columns of X, and the {self.unit} here are no columns of X; leave "
                "groups out, or use features='splines'"
            )
        # ``KSupport`` reads groups in any form; its partition has the group of each input.
        return np.repeat(KSupport(1, groups).partition(self.n_inputs).labels, self.sizes)

    def weights_of_groups(self, weights: ArrayLike) -> Array:
        """Return one weight for each term with columns, given these weights or those of all terms.

        Raise ValueError if ``weights`` has another number of entries.
        """
        array = np.asarray(weights, dtype=np.float64)
        if array.shape == (self.used.size,):
            return array
        if array.shape != (self.n_terms,):
            raise ValueError(
                f"Groups: weights must hold one number for each of the {self.n_terms} {self.unit}, "
                f"got shape {array.shape}"
            )
        return np.asarray(array[self.used])


class MappedDesign(Design):
    """A design whose columns are those of a feature map, ``map``."""

    map: FeatureMap
    _names: list[str] | None

    def feature_names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return a readable name of each of these columns.

        ``names`` are the names of the inputs; by default they are those of the table X.
        """
        return self.map.names(columns, self._names if names is None else names)


def map_of(design: Design) -> FeatureMap:
    """Return the map of a design, which is ``Inputs`` unless it is a ``MappedDesign``."""
    return design.map if isinstance(design, MappedDesign) else Inputs(design.shape[1])
