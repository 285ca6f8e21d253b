"""Lift: norms that are the image of a simpler norm over more coordinates.

Latent groups, chains, trees, hierarchies, operators and unions are all of one kind,

    gauge(w) = inf { inner(u) : L u = w },   w in R^p, u in R^m,

with a linear map L that mostly repeats coordinates, and an inner norm that has a proximal map and
can be restricted. The polar is inner°(L'z), and min over w of f(X w) + R(gauge(w)) is min over u
of f(X L u) + R(inner(u)): the same problem over the columns of X L, which nobody stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.core.interfaces.arrays import Array, Columns
from atomlearn.core.interfaces.norm import Norm
from atomlearn.core.interfaces.scores import Scores
from atomlearn.core.interfaces.solver import WarmStart


class Expansion(ABC):
    """The linear map L from m lifted coordinates to p features, known by its columns."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(p, m): features, lifted coordinates."""

    @abstractmethod
    def scores(self, base: Scores) -> Scores:
        """Return L'z for z = ``base``, asked and not necessarily stored."""

    @abstractmethod
    def columns(self, lifted: Columns) -> tuple[Columns, Any]:
        """Return the features that these lifted coordinates touch, increasing, and L there.

        L restricted to them is a CSC array (len(features), len(lifted)), or, where there are
        ``members``, the position of each lifted coordinate's feature among those returned.
        """

    #: (m,) int64, the feature of each lifted coordinate, where L only repeats features; else None.
    members: Columns | None = None

    @property
    def matrix(self) -> sparse.csc_array:
        """L as a CSC array of shape (p, m)."""
        p, m = self.shape
        if self.members is not None:
            ones = (np.ones(m), self.members, np.arange(m + 1))
            return sparse.csc_array(ones, shape=(p, m))
        features, local = self.columns(np.arange(m, dtype=np.int64))
        parts = (local.data, features[local.indices], local.indptr)
        return sparse.csc_array(parts, shape=(p, m))

    def apply(self, lifted: Columns, weights: Array) -> tuple[Columns, Array]:
        """Return the features and the coefficients of w = L u, u = ``weights`` at ``lifted``."""
        features, local = self.columns(lifted)
        if self.members is not None:
            sums = np.bincount(local, weights=weights, minlength=features.size)
            return features, sums.astype(np.float64, copy=False)
        return features, np.asarray(local @ weights)

    def transpose(self, z: Array) -> Array:
        """Return L'z."""
        return np.asarray(self.matrix.T @ z)

    @abstractmethod
    def squared_norms(self, squares: Array) -> Array:
        """Return the squared norms of the columns of X L from those of X, ``squares``.

        Exact where each lifted coordinate is one feature, else the bound by the triangle
        inequality.
        """

    def place(self, features: Columns, weights: Array) -> tuple[Columns, Array] | None:
        """Return some u with L u = w for a warm start, or None where it is not easily found."""
        return None


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


@dataclass(frozen=True, slots=True)
class Lift:
    """gauge(w) = inf { norm(u) : L u = w }, L = ``expansion``, ``norm`` over the lifted u.

    names : what the user calls the sets of lifted coordinates, "" where they have no name.
    """

    expansion: Expansion
    norm: Norm
    names: tuple[str, ...] | None = None

    def start(self, warm: WarmStart) -> WarmStart:
        """Return a warm start in lifted coordinates: the parts of an earlier fit, or any parts."""
        parts = warm.lifted if self._fits(warm) else None
        if parts is None:
            parts = self.expansion.place(warm.columns, warm.weights)
        if parts is None:
            parts = warm.columns[:0], warm.weights[:0]
        return WarmStart(*parts, warm.intercept)

    def _fits(self, warm: WarmStart) -> bool:
        """Return whether the parts of the warm start make up its point."""
        if warm.lifted is None:
            return False
        lifted, weights = warm.lifted
        if lifted.size and int(lifted.max()) >= self.expansion.shape[1]:
            return False
        features, sums = self.lowered(lifted, weights)
        same = np.array_equal(features, warm.columns)
        return same and np.allclose(sums, warm.weights, rtol=1e-6)

    def lowered(self, lifted: Columns, weights: Array) -> tuple[Columns, Array]:
        """Return the features and coefficients, none of them 0, of w = L u."""
        features, sums = self.expansion.apply(lifted, weights)
        used = np.flatnonzero(sums)
        return features[used], sums[used]

    def lowered_start(self, warm: WarmStart) -> WarmStart:
        """Return a warm start in lifted coordinates as one over the features."""
        point = self.lowered(warm.columns, warm.weights)
        return WarmStart(*point, warm.intercept, (warm.columns, warm.weights))

    def parts(self, lifted: Columns, weights: Array) -> list[Part]:
        """Return the parts of the point u = ``weights`` at ``lifted``, by number of set."""
        labels = self.norm.labels(lifted, self.expansion.shape[1])
        result = []
        for group, columns, values in self._sums(lifted, weights, labels):
            used = np.flatnonzero(values)
            if used.size:
                known = self.names is not None and group < len(self.names)
                name = self.names[group] if self.names is not None and known else None
                result.append(Part(int(group), name or None, columns[used], values[used]))
        return result

    def _sums(
        self, lifted: Columns, weights: Array, labels: Columns
    ) -> Iterator[tuple[int, Columns, Array]]:
        """Yield each set in use with the features and coefficients of its part of L u."""
        features, local = self.expansion.columns(lifted)
        if self.expansion.members is None:
            for group in np.unique(labels):
                mine = labels == group
                yield int(group), *self.expansion.apply(lifted[mine], weights[mine])
            return
        # Coordinates are features: all sets by one sort.
        order = np.lexsort((local, labels))
        group_of, place = labels[order], local[order]
        new = np.ones(order.size, dtype=bool)
        new[1:] = (np.diff(group_of) != 0) | (np.diff(place) != 0)
        first = np.flatnonzero(new)
        if not first.size:
            return
        sums = np.add.reduceat(weights[order], first)
        group_of, columns = group_of[first], features[place[first]]
        cuts = np.flatnonzero(np.diff(group_of)) + 1
        for start, end in pairwise([0, *cuts.tolist(), first.size]):
            yield int(group_of[start]), columns[start:end], sums[start:end]
