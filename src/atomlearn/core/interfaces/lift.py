"""Lift: norms that are the image of a simpler norm over more coordinates.

Latent groups, chains, trees, hierarchies, operators and unions are all of one kind,

    gauge(w) = inf { inner(u) : L u = w },   w in R^p, u in R^m,

with a linear map L that mostly repeats coordinates, and an inner norm that has a proximal map and
can be restricted. The polar is inner°(L'z), and min over w of f(X w) + R(gauge(w)) is min over u
of f(X L u) + R(inner(u)): the same problem over the columns of X L, which nobody stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn.core.interfaces.design import Columns, Scores
from atomlearn.core.interfaces.norm import Norm

Array = NDArray[np.float64]


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
    def columns(self, lifted: Columns) -> tuple[Columns, sparse.csc_array | Columns]:
        """Return the features that these lifted coordinates touch, increasing, and L there.

        L restricted to them is a CSC array (len(features), len(lifted)), or, where each lifted
        coordinate is one feature, the position of that feature among those returned.
        """

    def apply(self, lifted: Columns, weights: Array) -> tuple[Columns, Array]:
        """Return the features and the coefficients of w = L u, u = ``weights`` at ``lifted``."""
        features, local = self.columns(lifted)
        if isinstance(local, np.ndarray):
            sums = np.bincount(local, weights=weights, minlength=features.size)
            return features, sums.astype(np.float64, copy=False)
        return features, np.asarray(local @ weights)

    @abstractmethod
    def restrict(self, lifted: Columns) -> tuple[Columns, Expansion]:
        """Return the features that these lifted coordinates touch, increasing, and L there."""

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
class Lift:
    """gauge(w) = inf { norm(u) : L u = w }, L = ``expansion``, ``norm`` over the lifted u.

    names : what the user calls the sets of lifted coordinates, "" where they have no name.
    """

    expansion: Expansion
    norm: Norm
    names: tuple[str, ...] | None = None
