"""Norms of the vector of group l2 norms: their proximal map and Jacobian from those on groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import _kernels
from atomlearn.core.interfaces import Array, Columns, ProxJacobian, ProxPoint, Scores
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.partition import Partition

#: Entries of the factors up to which they are a dense array, which is faster where they are few.
MAX_DENSE_FACTORS = 2**18


class GroupedNorm(VectorNorm):
    """A norm with a parameter ``groups``; problems are built over one whose groups are read."""

    groups: Any

    def partition(self, n_features: int) -> Partition:
        """Return the groups of n_features features, every feature in exactly one."""
        return Partition.of(self.groups, n_features, type(self).__name__)

    def labels(self, columns: Columns, n_features: int) -> Columns:
        """The number of the group of each column; 0 where there are none."""
        if self.groups is None:
            return super().labels(columns, n_features)
        return self.partition(n_features).labels[columns]


def groups_above(
    scores: Scores, partition: Partition, weights: Array | None, bound: float
) -> Columns:
    """Return the columns of the groups with ||z_g||_2 / weight_g >= bound, best group first."""
    norms = partition.norms_of_scores(scores)
    rating = norms if weights is None else norms / weights
    found = np.flatnonzero(rating >= bound)
    found = found[np.argsort(-rating[found], kind="stable")]
    return partition.members(found)


def best_groups(
    scores: Scores, partition: Partition, weights: Array | None, least: int, count: int
) -> Columns:
    """Return columns of the groups of largest norm / weight, best first.

    At least ``least`` groups, and further whole groups until there are ``count`` columns.
    """
    rating = partition.norms_of_scores(scores)
    if not rating.size:
        return np.zeros(0, dtype=np.int64)
    if weights is not None:
        rating = rating / weights
    # A group has a column at least: no more groups than columns are wanted.
    wanted = min(max(least, count), rating.size)
    if not wanted:
        return np.zeros(0, dtype=np.int64)
    order, _ = _kernels.top_magnitude(rating, wanted)
    filled = np.searchsorted(np.cumsum(partition.sizes[order]), count) + 1
    return partition.members(order[: max(least, int(filled))])


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
    delta = inner.diagonal
    # In a group of one the rank-one term is the diagonal; at a zero group the map is delta_g I.
    plain = (partition.sizes == 1) | (norms == 0)
    diagonal = np.where(plain, delta, ratio)
    own = np.flatnonzero(~plain & (delta != ratio))
    length = norms[labels]
    direction = np.divide(v, length, out=np.zeros_like(v), where=length > 0)
    column = np.full(partition.n_groups, -1, dtype=np.int64)
    column[own] = np.arange(own.size)
    rows = np.flatnonzero(column[labels] >= 0)
    factors: Any = sparse.csc_array(
        (direction[rows], (rows, column[labels[rows]])), shape=(v.size, own.size)
    )
    spread = direction[:, None] * inner.dense_factors()[labels]
    coefficients = np.concatenate([(delta - ratio)[own], inner.coefficients])
    if v.size * coefficients.size <= MAX_DENSE_FACTORS:
        factors = np.column_stack([factors.toarray(), spread])
    elif spread.shape[1]:
        factors = sparse.hstack([factors, sparse.csc_array(spread)], format="csc")
    return ProxJacobian(diagonal[labels], factors, coefficients)
