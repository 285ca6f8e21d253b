"""Partition: disjoint groups of features, from index lists or labels; the rest are singletons."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn.core.interfaces import Array, Columns, Scores
from atomlearn.core.interfaces.arrays import distinct
from atomlearn.core.interfaces.scores import norms_by_label
from atomlearn.core.norms.sets import Membership, is_listing, membership_of
from atomlearn.core.norms.vectors import power_of_two


class Partition:
    """Each of n_features features belongs to one group.

    labels : (n_features,) int64 in 0..n_groups-1, each group number in use; n_listed : how many
    groups the user listed (they come first, in the user's order; the rest are singletons).
    """

    def __init__(self, labels: Columns, n_groups: int, n_listed: int) -> None:
        self.labels = labels
        self.n_groups = n_groups
        self.n_listed = n_listed

    @classmethod
    def of(cls, groups: Any, n_features: int, owner: str) -> Partition:
        """Read index lists, a label array or a Partition; raise where they do not fit."""
        if isinstance(groups, Partition):
            if groups.labels.size != n_features:
                raise ValueError(
                    f"{owner}: the groups describe {groups.labels.size} features, but there are "
                    f"{n_features}; pass groups of these features"
                )
            return groups
        if _is_labels(groups):
            return cls._of_labels(np.asarray(groups), n_features, owner)
        if type(groups) is np.ndarray and groups.dtype.kind in "iu":
            groups = list(groups)  # groups of one size, a row each
        return cls._of_sets(membership_of(groups, n_features, owner), owner)

    @classmethod
    def _of_labels(cls, labels: NDArray[Any], n_features: int, owner: str) -> Partition:
        if labels.size != n_features:
            raise ValueError(
                f"{owner}: groups has {labels.size} labels, but there are {n_features} features; "
                "give one label a feature (a negative one for a feature in no group)"
            )
        if labels.dtype.kind not in "iuUSO":
            raise TypeError(
                f"{owner}: group labels must be integers or strings, got dtype {labels.dtype}; "
                "convert them with labels.astype(int)"
            )
        alone = labels < 0 if labels.dtype.kind == "i" else np.zeros(labels.size, dtype=bool)
        names, numbered = np.unique(labels[~alone], return_inverse=True)
        result = np.empty(n_features, dtype=np.int64)
        result[~alone] = numbered.ravel()
        n_alone = int(alone.sum())
        result[alone] = names.size + np.arange(n_alone)
        return cls(result, names.size + n_alone, names.size)

    @classmethod
    def _of_sets(cls, sets: Membership, owner: str) -> Partition:
        labels, first = sets.labels, np.unique(sets.members, return_index=True)[1]
        if first.size < sets.members.size:
            again = int(np.setdiff1d(np.arange(sets.members.size), first)[0])
            raise ValueError(
                f"{owner}: groups must be disjoint, but feature {int(sets.members[again])} appears "
                f"again in group {int(labels[again])}; remove it there, or use a norm for "
                "overlapping groups"
            )
        return cls(labels[first], sets.n_sets, sets.n_listed)

    def all_listed(self) -> Partition:
        """Return the same groups, the lone features among those that are listed."""
        if self.n_listed == self.n_groups:
            return self
        return Partition(self.labels, self.n_groups, self.n_groups)

    @cached_property
    def sizes(self) -> Columns:
        """Number of features of each group, shape (n_groups,)."""
        return np.bincount(self.labels, minlength=self.n_groups).astype(np.int64)

    @cached_property
    def order(self) -> tuple[Columns, Columns]:
        """The features, group after group, and where each group begins and the last one ends."""
        order = np.argsort(self.labels, kind="stable").astype(np.int64)
        return order, np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def norms_of_scores(self, scores: Scores) -> Array:
        """Return the l2 norm of z over each group, shape (n_groups,)."""
        if not self.n_groups:
            return np.zeros(0)
        return scores.group_norms(self.labels, self.n_groups)

    def members(self, numbers_of_groups: Columns) -> Columns:
        """Return the features of these groups, group after group, increasing within each."""
        order, starts = self.order
        sizes = self.sizes[numbers_of_groups]
        ends = np.cumsum(sizes)
        shift = np.repeat(starts[numbers_of_groups] - (ends - sizes), sizes)
        return np.asarray(order[np.arange(shift.size) + shift])

    def norms(self, w: Array) -> Array:
        """Return the l2 norm of w over each group, safe at any scale, shape (n_groups,)."""
        if not self.n_groups:
            return np.zeros(0)
        scale = power_of_two(w)
        return scale * norms_by_label(w / scale, self.labels, self.n_groups)

    def restrict(self, columns: Columns) -> tuple[Partition, Columns]:
        """Return the partition of these columns, and which of the old groups it consists of."""
        kept, labels = distinct(self.labels[columns], self.n_groups)
        return Partition(labels, kept.size, kept.size), kept

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partition):
            return NotImplemented
        return self.n_listed == other.n_listed and np.array_equal(self.labels, other.labels)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Partition({self.labels.size} features in {self.n_groups} groups)"


def _is_labels(groups: Any) -> bool:
    if isinstance(groups, np.ndarray) and groups.dtype != object:
        return groups.ndim == 1
    if not is_listing(groups) or isinstance(groups, Mapping) or sparse.issparse(groups):
        return False
    items = list(groups)
    return bool(items) and all(isinstance(one, numbers.Number | np.generic | str) for one in items)
