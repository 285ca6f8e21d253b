"""Lift: a norm as the image of a simpler norm over more coordinates.

Latent groups, chains, trees, hierarchies, operators and unions are all of one kind,

    gauge(w) = inf { inner(u) : L u = w },   w in R^p, u in R^m,

with a linear map L that mostly repeats coordinates, and an inner norm that has a proximal map and
can be restricted. The polar is inner°(L'z). The minimum over w of f(X w) + R(gauge(w)) is the
minimum over u of f(X L u) + R(inner(u)), a problem over the columns of X L. This matrix is never
formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from atomlearn._support import Array, Columns, numbered, power_of_two, ranges
from atomlearn.core.interfaces.scores import ArrayScores, Scores, norms_by_label

#: The best sets of a tree are found by a search if the sizes of its sets sum to this or more. In a
#: smaller tree, rating all sets takes less time.
SEARCHED_FROM = 2**19


@dataclass(slots=True)
class SearchWork:
    """The work of searches for the best sets, in columns.

    Attributes
    ----------
    columns : float
        Number of columns of the sets that searches rated.
    possible : float
        Number of columns of all candidate sets.
    """

    columns: float = 0.0
    possible: float = 0.0


@dataclass(frozen=True)
class Nested:
    """Sets of features, any two nested or disjoint; ||z_B||^2 is a sum over cells of features.

    Attributes
    ----------
    labels : (m,) int64
        The set of each lifted coordinate.
    home : (p,) int64
        The cell of each feature: features that belong to the same sets form a cell.
    inside : (n_sets, n_cells) CSR
        1 if the cell is in the set.
    sizes : (n_sets,) int64
        The number of features of each set.
    parents : (n_sets,) int64
        The smallest set that contains each set, -1 for roots.
    work : SearchWork
        The work of searches of the best sets.
    """

    labels: Columns
    home: Columns
    inside: sparse.csr_array
    sizes: Columns
    parents: Columns
    work: SearchWork

    @cached_property
    def by_parent(self) -> tuple[Columns, Columns, Columns]:
        """The sets ordered by parent, and the children of each set among them.

        The result is (order, starts, counts). With first = starts[B + 1], the children of set B are
        order[first : first + counts[B + 1]]. Entry 0 of starts and counts is for the roots.
        """
        order = np.argsort(self.parents, kind="stable")
        starts = np.searchsorted(self.parents[order], np.arange(-1, self.parents.size + 1))
        return order, starts[:-1], np.diff(starts)

    def children(self, sets: Columns) -> Columns:
        """Return the children of these ``sets``, concatenated; -1 is the parent of all roots."""
        order, starts, counts = self.by_parent
        return np.asarray(order[ranges(starts[sets + 1], counts[sets + 1])])

    def least_inside(self, weights: Array) -> Array:
        """Return, for each set, the minimum of its weight and of the weights of sets inside it.

        ``weights`` and the result are (n_sets,).
        """
        least = np.array(weights, dtype=np.float64)
        # List the sets by depth; then pass the minima up, from the deepest sets to the roots.
        sets_by_depth = [self.children(np.array([-1]))]
        while sets_by_depth[-1].size:
            sets_by_depth.append(self.children(sets_by_depth[-1]))
        for sets in sets_by_depth[-1:0:-1]:
            np.minimum.at(least, self.parents[sets], least[sets])
        return least


class Expansion:
    """The linear map L from m lifted coordinates to p features, as a sparse matrix.

    Parameters
    ----------
    matrix : array or sparse matrix (p, m)
        L.
    repeats : bool
        Whether each lifted coordinate is a copy of one feature.
    nested : Nested, optional
        The tree of the sets, if any two are nested or disjoint.
    """

    def __init__(self, matrix: Any, repeats: bool = False, nested: Nested | None = None) -> None:
        """Store L in CSC format; the parameters are those of the class."""
        self.matrix = sparse.csc_array(matrix)
        self.repeats = repeats
        self.nested = nested
        self.shape = int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @classmethod
    def repeating(
        cls, members: Columns, n_features: int, nested: Nested | None = None
    ) -> Expansion:
        """Return the 0-1 matrix L that maps lifted coordinate i to the feature members[i].

        It has ``n_features`` rows; ``nested`` is explained in ``Expansion``.
        """
        n_lifted = members.size
        # The CSC format: the entries, their rows, and where each column starts (one entry each).
        entries = np.ones(n_lifted), members, np.arange(n_lifted + 1)
        return cls(sparse.csc_array(entries, shape=(n_features, n_lifted)), True, nested)

    @classmethod
    def stacked(cls, expansions: list[Expansion]) -> Expansion:
        """Return the ``expansions`` L_i as one map L = [L_1, L_2, ...], with w = sum_i L_i u_i."""
        matrices = [expansion.matrix for expansion in expansions]
        repeats = all(expansion.repeats for expansion in expansions)
        return cls(sparse.hstack(matrices, format="csc"), repeats)

    def scores(self, base: Scores) -> Scores:
        """Return the lifted scores L'z for z = ``base``, computed when they are requested."""
        return LiftedScores(self, base)

    def touched(self, lifted: Columns) -> Touched:
        """Return the features to which the coordinates ``lifted`` contribute, and L for both."""
        # List the entries of these columns of L. This is faster than indexing a sparse array, which
        # would check and sort valid indices.
        matrix: Any = self.matrix
        starts = matrix.indptr[lifted]
        sizes = matrix.indptr[lifted + 1] - starts
        owners = np.repeat(np.arange(lifted.size), sizes)
        positions = ranges(starts, sizes)
        features, rows = numbered(matrix.indices[positions], self.shape[0])
        return Touched(features, rows, owners, matrix.data[positions])

    def apply(self, lifted: Columns, weights: Array) -> tuple[Columns, Array]:
        """Return features and coefficients of w = L u; u is ``weights`` at ``lifted``, else 0."""
        touched = self.touched(lifted)
        shares = touched.values * weights[touched.owners]
        return touched.features, np.bincount(touched.rows, shares, touched.features.size).astype(
            np.float64
        )

    def squared_norms(self, squares: Array) -> Array:
        """Return the squared norms of the columns of X L from those of X, ``squares``.

        They are exact if each lifted coordinate is one feature, else upper bounds by the triangle
        inequality.
        """
        return np.asarray((abs(self.matrix).T @ np.sqrt(squares)) ** 2)

    def place(self, features: Columns, weights: Array) -> tuple[Columns, Array] | None:
        """Return u with L u = w for a warm start: each feature goes to the first set that has it.

        w has the values ``weights`` at ``features``. The result is lifted coordinates and their
        values; None unless each lifted coordinate is one feature.
        """
        if not self.repeats:
            return None
        # Coordinates are assigned from the last to the first, so that the first coordinate of each
        # feature remains. -1: no coordinate.
        first = np.full(self.shape[0], -1)
        first[self.matrix.indices[::-1]] = np.arange(self.shape[1])[::-1]
        positions = first[features]
        return None if (positions < 0).any() else (positions, weights)


class Touched(NamedTuple):
    """The entries of L at some lifted coordinates: values[e] in row rows[e], column owners[e].

    Attributes
    ----------
    features : (n_rows,) int64
        Increasing, the feature of each row.
    rows : (n_entries,) int64
        Positions in ``features``.
    owners : (n_entries,) int64
        Positions in the given lifted coordinates.
    values : (n_entries,) float64
        The entries of L.
    """

    features: Columns
    rows: Columns
    owners: Columns
    values: Array

    def matrix(self, count: int) -> sparse.csc_array:
        """Return L for these rows, with ``count`` columns: the given lifted coordinates."""
        shape = (self.features.size, count)
        return sparse.csc_array((self.values, (self.rows, self.owners)), shape=shape)


class LiftedScores(Scores):
    """The lifted scores L'z; the whole vector is computed at the first request and then cached."""

    def __init__(self, expansion: Expansion, base: Scores) -> None:
        """Store the map ``expansion``, L, and the scores ``base`` of the features, z."""
        self.expansion = expansion
        self.base = base
        self._full: ArrayScores | None = None
        # The norms of z over the cells of nested sets, see ``Nested``.
        self._cells: Array | None = None
        self.n_columns = self.expansion.shape[1]

    def _all(self) -> ArrayScores:
        """Return all lifted scores L'z, computed once."""
        if self._full is None:
            self._full = ArrayScores(np.asarray(self.expansion.matrix.T @ self.base.full()))
        return self._full

    def full(self) -> Array:
        """Return the scores of all columns."""
        return self._all().full()

    def at(self, columns: Columns) -> Array:
        """Return (L'z)_i at the lifted coordinates ``columns``, from scores of their features."""
        touched = self.expansion.touched(columns)
        products = touched.values * self.base.at(touched.features)[touched.rows]
        return np.bincount(touched.owners, products, columns.size).astype(np.float64)

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the ``count`` largest scores by magnitude: their columns, and the scores."""
        return self._all().top(count)

    def group_norms(self, labels: Columns, n_groups: int) -> Array:
        """Return the l2 norms of L'z over sets, (n_groups,); labels[i] is the set of coordinate i.

        If ``labels`` are those of the nested sets, the norms are computed from norms over cells of
        features (features in the same sets), without L'z.
        """
        nested = self.expansion.nested
        if nested is None or labels is not nested.labels:
            return norms_by_label(self.full(), labels, n_groups)
        return TreeRatings(nested, self._cell_norms(nested), None).full()

    def group_ratings(self, labels: Columns, n_groups: int, weights: Array | None = None) -> Scores:
        """Return the ratings of sets: l2 norms of L'z over sets, divided by ``weights`` (None: 1).

        labels[i] is the set of lifted coordinate i, of ``n_groups`` sets. If they are those of the
        nested sets, the best sets are searched from the roots of the tree.
        """
        nested = self.expansion.nested
        if nested is None or labels is not nested.labels:
            return super().group_ratings(labels, n_groups, weights)
        return TreeRatings(nested, self._cell_norms(nested), weights)

    def _cell_norms(self, nested: Nested) -> Array:
        """Return the l2 norm of z over each cell of features of ``nested``, computed once."""
        if self._cells is None:
            self._cells = self.base.group_norms(nested.home, nested.inside.shape[1])
        return self._cells


class TreeRatings(Scores):
    r"""||z_B||_2 / delta_B of nested sets B: the best are found without rating all of them.

    For every set A inside B, ||z_A||_2 is at most ||z_B||_2. So the rating of A is at most
    ||z_B||_2 divided by the minimum weight of the sets inside B. If this bound is below the ratings
    of the best sets so far, no set inside B is rated. The search begins at the roots, and its
    result is exact ([T] Remark 2: Tan, Tsang, Wang 2014). In small trees all sets are rated.

    Parameters
    ----------
    nested : Nested
        The sets.
    cells : (n_cells,)
        The norm of z over each cell.
    weights : (n_sets,), optional
        delta; None: all 1.
    """

    def __init__(self, nested: Nested, cells: Array, weights: Array | None) -> None:
        """Store the squared norms of the cells, divided by a power of two against overflow."""
        self.nested = nested
        self.weights = weights
        self.n_columns = int(nested.sizes.size)
        self._unit = power_of_two(cells)
        self._squares = (cells / self._unit) ** 2

    def at(self, columns: Columns) -> Array:
        """Return the ratings of the sets ``columns``."""
        ratings = self._unit * np.sqrt(self.nested.inside[columns] @ self._squares)
        return np.asarray(ratings if self.weights is None else ratings / self.weights[columns])

    def full(self) -> Array:
        """Return the ratings of all sets."""
        ratings = self._unit * np.sqrt(self.nested.inside @ self._squares)
        return np.asarray(ratings if self.weights is None else ratings / self.weights)

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the ``count`` best sets and their ratings; small trees are rated completely."""
        count = min(count, self.n_columns)
        if count <= 0 or self.nested.labels.size < SEARCHED_FROM:
            return ArrayScores(self.full()).top(count)
        sets, ratings = self._searched(count, 0.0)  # all ratings are at least 0
        positions, values = ArrayScores(ratings).top(count)
        return sets[positions], values

    def above(self, bound: float) -> tuple[Columns, Array]:
        """Return the sets rated at least ``bound``, best first, and their ratings."""
        if self.nested.labels.size < SEARCHED_FROM:
            return ArrayScores(self.full()).above(bound)
        sets, ratings = self._searched(self.n_columns, bound)
        positions, values = ArrayScores(ratings).above(bound)
        return sets[positions], values

    def _searched(self, count: int, threshold: float) -> tuple[Columns, Array]:
        """Return the numbers of sets, in increasing order, and their ratings.

        They include the ``count`` best of the sets rated ``threshold`` or more. All other sets that
        the search rated are returned, too.
        """
        nested = self.nested
        weights = self.weights
        # A set inside B is rated at most rating(B) * weight(B) / (smallest weight inside B).
        largest_ratio = np.ones(self.n_columns)
        if weights is not None and np.ptp(weights) > 0.0:
            largest_ratio = weights / nested.least_inside(weights)
        # ``sets`` have been rated. ``ahead`` are those whose children may still be rated, and
        # ``bounds`` bound the ratings of all sets inside each of them. ``new`` are rated next.
        sets = ahead = np.zeros(0, dtype=np.int64)
        ratings = bounds = np.zeros(0)
        new = nested.children(np.array([-1]))
        while new.size or ahead.size:
            nested.work.columns += float(nested.sizes[new].sum())
            rated = self.at(new)
            sets = np.append(sets, new)
            ratings = np.append(ratings, rated)
            if ratings.size >= count:
                threshold = max(threshold, float(np.partition(ratings, -count)[-count]))
            ahead = np.append(ahead, new)
            # The rounding errors of nested sets differ, which the factor allows for.
            bounds = np.append(bounds, rated * largest_ratio[new] * (1 + 1e-9))
            candidates = bounds >= threshold
            # The children of the sets with the largest bounds are rated first, because they are
            # likely to raise the threshold.
            opened = candidates & (bounds >= 0.5 * float(bounds.max()))
            new = nested.children(ahead[opened])
            ahead = ahead[candidates & ~opened]
            bounds = bounds[candidates & ~opened]
        nested.work.possible += float(nested.labels.size)
        order = np.argsort(sets)
        return sets[order], ratings[order]


@dataclass(frozen=True, slots=True)
class Part:
    """The part z_B of w = sum_B z_B, for one set B; nonzero only at ``columns``.

    Attributes
    ----------
    group : int
        Number of the set in the order of the user (then features in no set, and further norms of a
        union, follow).
    name : str, optional
        Its name, or None.
    columns : (s,) int64
        Features, increasing.
    weights : (s,) float64
    """

    group: int
    name: str | None
    columns: Columns
    weights: Array
