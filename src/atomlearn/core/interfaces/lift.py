"""Lift: norms that are the image of a simpler norm over more coordinates.

Latent groups, chains, trees, hierarchies, operators and unions are all of one kind,

    gauge(w) = inf { inner(u) : L u = w },   w in R^p, u in R^m,

with a linear map L that mostly repeats coordinates, and an inner norm that has a proximal map and
can be restricted. The polar is inner°(L'z), and min over w of f(X w) + R(gauge(w)) is min over u
of f(X L u) + R(inner(u)): the same problem over the columns of X L, which is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from atomlearn.core.interfaces.arrays import Array, Columns, numbered, power_of_two
from atomlearn.core.interfaces.scores import ArrayScores, Scores, norms_by_label


@dataclass(frozen=True, slots=True)
class Nested:
    """Sets of which any two are nested or disjoint: their scores are sums over a few cells.

    labels : (m,) the set of each lifted coordinate; home : (p,) the cell of each feature, those
    that lie in the same sets; inside : (n_sets, n_cells) CSR, 1 where the cell lies in the set.
    """

    labels: Columns
    home: Columns
    inside: sparse.csr_array


class Expansion:
    """The linear map L from m lifted coordinates to p features, a CSC array (p, m).

    repeats : whether each lifted coordinate is one feature; nested : how its sets lie in each
    other, where they are those of a tree.
    """

    def __init__(self, matrix: Any, repeats: bool = False, nested: Nested | None = None) -> None:
        self.matrix = sparse.csc_array(matrix)
        self.repeats = repeats
        self.nested = nested
        self.shape = int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @classmethod
    def repeating(
        cls, members: Columns, n_features: int, nested: Nested | None = None
    ) -> Expansion:
        """Return the 0-1 matrix L that maps lifted coordinate i to the feature members[i]."""
        m = members.size
        parts = np.ones(m), members, np.arange(m + 1)
        return cls(sparse.csc_array(parts, shape=(n_features, m)), True, nested)

    @classmethod
    def stacked(cls, expansions: list[Expansion]) -> Expansion:
        """Return the maps stacked side by side, L = [L_1, L_2, ...]: w = sum_i L_i u_i."""
        matrices = [expansion.matrix for expansion in expansions]
        repeats = all(expansion.repeats for expansion in expansions)
        return cls(sparse.hstack(matrices, format="csc"), repeats)

    def scores(self, base: Scores) -> Scores:
        """Return the lifted scores L'z for z = ``base``, computed when they are requested."""
        return LiftedScores(self, base)

    def touched(self, lifted: Columns) -> Touched:
        """Return the features that these lifted coordinates touch, and L there."""
        # Indexing a sparse array would check and sort what is right and sorted already.
        starts = self.matrix.indptr[lifted]
        ends = self.matrix.indptr[lifted + 1]
        sizes = ends - starts
        owners = np.repeat(np.arange(lifted.size), sizes)
        places = np.arange(owners.size) + (ends - np.cumsum(sizes))[owners]
        features, rows = numbered(self.matrix.indices[places], self.shape[0])
        return Touched(features, rows, owners, self.matrix.data[places])

    def apply(self, lifted: Columns, weights: Array) -> tuple[Columns, Array]:
        """Return the features and the coefficients of w = L u, u = ``weights`` at ``lifted``."""
        at = self.touched(lifted)
        shares = at.values * weights[at.owners]
        return at.features, np.bincount(at.rows, shares, at.features.size).astype(np.float64)

    def squared_norms(self, squares: Array) -> Array:
        """Return the squared norms of the columns of X L from those of X, ``squares``.

        Exact where each lifted coordinate is one feature, else the bound by the triangle
        inequality.
        """
        return np.asarray((abs(self.matrix).T @ np.sqrt(squares)) ** 2)

    def place(self, features: Columns, weights: Array) -> tuple[Columns, Array] | None:
        """Return some u with L u = w for a warm start: each feature in the first set that has it.

        None where that is not easily found.
        """
        if not self.repeats:
            return None
        first = np.full(self.shape[0], -1)
        first[self.matrix.indices[::-1]] = np.arange(self.shape[1])[::-1]
        places = first[features]
        return None if (places < 0).any() else (places, weights)


class Touched(NamedTuple):
    """L at some lifted coordinates, by its entries: values[e] at (rows[e], owners[e]).

    features : (n_rows,) int64, increasing, the feature of each row; owners : positions in the given
    lifted coordinates; values : the entries of L.
    """

    features: Columns
    rows: Columns
    owners: Columns
    values: Array

    def matrix(self, count: int) -> sparse.csc_array:
        """Return L there, over ``count`` lifted coordinates."""
        shape = (self.features.size, count)
        return sparse.csc_array((self.values, (self.rows, self.owners)), shape=shape)


class LiftedScores(Scores):
    """The lifted scores L'z; the whole vector is computed at the first request and then cached."""

    def __init__(self, expansion: Expansion, base: Scores) -> None:
        self.expansion = expansion
        self.base = base
        self._full: ArrayScores | None = None
        self.n_columns = self.expansion.shape[1]

    def _all(self) -> ArrayScores:
        if self._full is None:
            self._full = ArrayScores(np.asarray(self.expansion.matrix.T @ self.base.full()))
        return self._full

    def full(self) -> Array:
        return self._all().full()

    def at(self, columns: Columns) -> Array:
        at = self.expansion.touched(columns)
        parts = at.values * self.base.at(at.features)[at.rows]
        return np.bincount(at.owners, parts, columns.size).astype(np.float64)

    def top(self, count: int) -> tuple[Columns, Array]:
        return self._all().top(count)

    def group_norms(self, labels: Columns, n_groups: int) -> Array:
        """Return the norms over sets; of nested ones without listing z, which may be implicit."""
        nested = self.expansion.nested
        if nested is None or labels is not nested.labels:
            return norms_by_label(self.full(), labels, n_groups)
        cells = self.base.group_norms(nested.home, nested.inside.shape[1])
        unit = power_of_two(cells)
        return np.asarray(unit * np.sqrt(nested.inside @ (cells / unit) ** 2))


@dataclass(frozen=True, slots=True)
class Part:
    """z_B of w = sum_B z_B: non-zero on ``columns`` of the set number ``group``.

    group : number of the set, as the user listed them (features in none, or the norms of a union,
    are counted on); name : what the user calls it, or None; columns : (s,) int64 features,
    increasing; weights : (s,) float64.
    """

    group: int
    name: str | None
    columns: Columns
    weights: Array
