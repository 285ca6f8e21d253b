"""Norms that take columns, or groups of columns, by their ratings; maps from those on groups."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from atomlearn.core.interfaces import Array, Columns, ProxJacobian, ProxPoint, Scores
from atomlearn.core.interfaces.proximal import side_by_side
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.names import named_groups
from atomlearn.core.norms.partition import Partition
from atomlearn.core.norms.vectors import l2_norm


class GroupedNorm(VectorNorm):
    """A norm with a parameter ``groups``; problems are built over one whose groups are read."""

    groups: Any = None

    def partition(self, n_features: int) -> Partition:
        """Return the groups of n_features features, every feature in exactly one."""
        return Partition.of(self.groups, n_features, type(self).__name__)

    def with_names(self, names: Sequence[str]) -> Self:
        """Return the same norm with names and patterns of columns replaced by their indices."""
        groups = named_groups(self.groups, names, type(self).__name__)
        return self if groups is self.groups else self.replaced(groups=groups)


class RatedNorm(GroupedNorm):
    """A norm whose polar is the l2 norm of the k largest ratings of columns, or of groups.

    A column is rated by |z_j|, a group by ||z_g||_2, both relative to weights where there are any.
    """

    def _groups(self, n_features: int) -> Partition | None:
        """Return the groups that are rated; None: the columns are."""
        return None if self.groups is None else self.partition(n_features)

    def _least(self, n_ratings: int) -> int:
        """Return k: how many columns, or groups, an atom has."""
        return 1

    @abstractmethod
    def _ratings(self, scores: Scores) -> Scores:
        """Return the ratings of all columns or groups."""

    def polar(self, scores: Scores) -> float:
        """The l2 norm of the k largest ratings."""
        ratings = self._ratings(scores)
        return l2_norm(ratings.top(self._least(ratings.n_columns))[1])

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """The columns of largest rating, k at least; whole groups, until there are ``count``."""
        ratings = self._ratings(scores)
        least = self._least(ratings.n_columns)
        order, values = ratings.top(max(least, count))
        order = order[: max(least, np.count_nonzero(values))]
        groups = self._groups(scores.n_columns)
        if groups is None:
            return order
        filled = int(np.searchsorted(np.cumsum(groups.sizes[order]), count)) + 1
        return groups.members(order[: max(least, filled)])

    def reference(self, scores: Scores) -> float:
        """The k-th largest rating."""
        ratings = self._ratings(scores)
        return float(np.abs(ratings.top(self._least(ratings.n_columns))[1]).min(initial=np.inf))

    def rated(self, scores: Scores, bound: float) -> Columns:
        """The columns, or whole groups, rated ``bound`` or more."""
        found = self._ratings(scores).above(bound)[0]
        groups = self._groups(scores.n_columns)
        return found if groups is None else groups.members(found)


def rated_groups(scores: Scores, groups: Partition, weights: Array | None) -> Scores:
    """Return ||z_g||_2 / weight_g for every group."""
    norms = groups.norms_of_scores(scores)
    return ArrayScores(norms if weights is None else norms / weights)


def lifted_point(v: Array, partition: Partition, inner: Callable[[Array], ProxPoint]) -> ProxPoint:
    """Proximal map of phi(group norms): each group keeps its direction, its norm is phi's prox."""
    norms = partition.norms(v)
    point = inner(norms)
    ratio = np.divide(point.point, norms, out=np.zeros_like(norms), where=norms > 0)

    def jacobian() -> ProxJacobian:
        return _lift_jacobian(point.jacobian(), v, norms, ratio, partition)

    return ProxPoint(v * ratio[partition.labels], point.gauge, jacobian)


def _lift_jacobian(
    inner: ProxJacobian, v: Array, norms: Array, ratio: Array, partition: Partition
) -> ProxJacobian:
    """Return diag(r_g) + sum_g (delta_g - r_g) u_g u_g' + (U F) C (U F)', u_g = v_g / ||v_g||.

    r_g is the shrinkage of group g, delta_g and (F, C) the Jacobian on norms. The factors are a
    sparse CSC array where they are large: one column for a group that needs it, with the rows of
    that group only, then those of the inner Jacobian.
    """
    labels = partition.labels
    delta, among = inner.diagonal, inner.dense_factors()
    # In a group of one the rank-one term is the diagonal; at a zero group, which has no direction,
    # the map is a multiple of the identity.
    plain = (partition.sizes == 1) | (norms == 0)
    diagonal = np.where(plain, delta, ratio)
    diagonal += np.where(norms == 0, among**2 @ inner.coefficients, 0.0)
    own = np.flatnonzero(~plain & (delta != ratio))
    length = norms[labels]
    direction = np.divide(v, length, out=np.zeros_like(v), where=length > 0)
    column = np.full(partition.n_groups, -1, dtype=np.int64)
    column[own] = np.arange(own.size)
    rows = np.flatnonzero(column[labels] >= 0)
    factors = sparse.csc_array(
        (direction[rows], (rows, column[labels[rows]])), shape=(v.size, own.size)
    )
    spread = direction[:, None] * among[labels]
    coefficients = np.concatenate([(delta - ratio)[own], inner.coefficients])
    factors = side_by_side([factors, spread])
    return ProxJacobian(diagonal[labels], factors, coefficients)
