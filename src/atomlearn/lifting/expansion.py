"""Expansions, the maps L of lifted norms: Selection repeats features, others mix them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import _kernels
from atomlearn.core.interfaces import Array, Columns, Expansion, Scores


class LiftedScores(Scores):
    """L'z, formed when first asked for all of it.

    ``once`` keeps what is computed from all scores of one pass and asked for twice (polar and
    best columns), such as the norms over groups.
    """

    def __init__(self, expansion: Expansion, base: Scores) -> None:
        self.expansion = expansion
        self.base: Scores = base
        self._remembered: dict[int, tuple[object, Array]] = {}
        self._full: Array | None = None

    def once(self, owner: object, compute: Callable[[], Array]) -> Array:
        """Return what ``compute`` gives, computed for each owner when first asked for."""
        known = self._remembered.get(id(owner))
        if known is None or known[0] is not owner:
            known = self._remembered[id(owner)] = owner, compute()
        return known[1]

    @property
    def n_columns(self) -> int:
        return self.expansion.shape[1]

    def full(self) -> Array:
        if self._full is None:
            self._full = self.expansion.transpose(self.base.full())
        return self._full

    def at(self, columns: Columns) -> Array:
        if self._full is not None:
            return np.asarray(self._full[columns])
        features, local = self.expansion.columns(columns)
        values = self.base.at(features)
        repeats = self.expansion.members is not None
        return np.asarray(values[local] if repeats else local.T @ values)

    def top(self, count: int) -> tuple[Columns, Array]:
        z = self.full()
        if count <= 0 or not z.size:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        return _kernels.top_magnitude(z, min(int(count), z.size))


class Selection(Expansion):
    """L u repeats features: lifted coordinate i belongs to feature ``members[i]``, (m,) int64."""

    members: Columns

    def __init__(self, members: Columns, n_features: int) -> None:
        self.members = members
        self.n_features = n_features

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_features, self.members.size

    def scores(self, base: Scores) -> LiftedScores:
        return LiftedScores(self, base)

    def transpose(self, z: Array) -> Array:
        """Return L'z."""
        return np.asarray(z[self.members])

    def columns(self, lifted: Columns) -> tuple[Columns, Columns]:
        features, local = np.unique(self.members[lifted], return_inverse=True)
        return features, local.ravel()

    def squared_norms(self, squares: Array) -> Array:
        return np.asarray(squares[self.members])

    def place(self, features: Columns, weights: Array) -> tuple[Columns, Array] | None:
        """Each feature in the first set that has it."""
        wanted = np.zeros(self.n_features, dtype=bool)
        wanted[features] = True
        candidates = np.flatnonzero(wanted[self.members])
        found, first = np.unique(self.members[candidates], return_index=True)
        if found.size < features.size:
            return None
        order = np.argsort(features, kind="stable")
        return candidates[first], weights[order]


class SparseExpansion(Expansion):
    """L as a SciPy CSC array of shape (p, m)."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = sparse.csc_array(matrix)

    @property
    def matrix(self) -> sparse.csc_array:
        """L itself."""
        return self._matrix

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    def scores(self, base: Scores) -> LiftedScores:
        return LiftedScores(self, base)

    def columns(self, lifted: Columns) -> tuple[Columns, sparse.csc_array]:
        local = self.matrix[:, lifted]
        features, rows = np.unique(local.indices, return_inverse=True)
        shape = (features.size, lifted.size)
        return features.astype(np.int64), sparse.csc_array(
            (local.data, rows.ravel(), local.indptr), shape=shape
        )

    def squared_norms(self, squares: Array) -> Array:
        return np.asarray((abs(self.matrix).T @ np.sqrt(squares)) ** 2)


def stacked(expansions: list[Expansion]) -> Selection | SparseExpansion:
    """Return [L_1, L_2, ...], the expansion of the lifted coordinates one after the other."""
    members = [expansion.members for expansion in expansions if expansion.members is not None]
    if len(members) == len(expansions):
        return Selection(np.concatenate(members), expansions[0].shape[0])
    return SparseExpansion(sparse.hstack([e.matrix for e in expansions], format="csc"))
