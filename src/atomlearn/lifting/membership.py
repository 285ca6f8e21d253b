"""Membership: a collection of sets of features that may overlap, from every form users have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn.core.interfaces import Columns
from atomlearn.core.norms.partition import index_list, is_listing


@dataclass(frozen=True, slots=True)
class Membership:
    """Set g holds the features members[starts[g]:starts[g + 1]], increasing, at least one.

    members : (m,) int64; starts : (n_sets + 1,) int64; n_listed : how many sets the user gave (the
    rest are features in none of them, each on its own); names : of the listed sets, or None.
    """

    members: Columns
    starts: Columns
    n_listed: int
    names: tuple[str, ...] | None = None

    @property
    def n_sets(self) -> int:
        return self.starts.size - 1

    @property
    def sizes(self) -> Columns:
        """Number of features of each set."""
        return np.diff(self.starts)

    def name(self, number: int) -> str | None:
        """Return what the user calls this set."""
        return self.names[number] if self.names is not None and number < self.n_listed else None


def membership_of(groups: Any, n_features: int, owner: str) -> Membership:
    """Read sets of column indices; names must have been resolved (``resolved``) before.

    ``groups`` is a list of index lists, a mapping from set names to index lists, a boolean matrix
    or a sparse matrix of shape (n_features, n_sets), or a Membership.
    """
    if isinstance(groups, Membership):
        _check_range(groups.members, groups.starts, n_features, owner)
        return groups
    names = None
    if isinstance(groups, Mapping):
        names = tuple(str(name) for name in groups)
        groups = list(groups.values())
    if sparse.issparse(groups):
        members, starts = _of_sparse(groups, n_features, owner)
    elif isinstance(groups, np.ndarray) and groups.ndim == 2:
        members, starts = _of_matrix(groups, n_features, owner)
    else:
        members, starts = _of_lists(groups, n_features, owner)
    _check_range(members, starts, n_features, owner)
    members = _sorted_distinct(members, starts, owner)
    return _with_singletons(members, starts, names, n_features)


def _of_sparse(groups: Any, n_features: int, owner: str) -> tuple[Columns, Columns]:
    if groups.shape[0] != n_features:
        raise ValueError(
            f"{owner}: a membership matrix has one row a feature and one column a group; got "
            f"shape {groups.shape} for {n_features} features; transpose it if need be"
        )
    columns = sparse.csc_array(groups)
    if columns.nnz and not columns.data.all():
        columns = columns.copy()
        columns.eliminate_zeros()
    return columns.indices.astype(np.int64), columns.indptr.astype(np.int64)


def _of_matrix(groups: NDArray[Any], n_features: int, owner: str) -> tuple[Columns, Columns]:
    if groups.dtype != np.bool_:
        raise TypeError(
            f"{owner}: a dense membership matrix must be boolean, of shape (n_features, n_groups); "
            f"got dtype {groups.dtype}; pass groups.astype(bool), or a list of index lists"
        )
    return _of_sparse(sparse.csc_array(groups), n_features, owner)


def _of_lists(groups: Any, n_features: int, owner: str) -> tuple[Columns, Columns]:
    if not is_listing(groups):
        raise TypeError(
            f"{owner}: groups must be index lists such as [[0, 1], [1, 2]], a membership matrix, "
            f"or a mapping from names to lists, got {groups!r}"
        )
    lists = [index_list(g, number, n_features, owner) for number, g in enumerate(groups)]
    sizes = [group.size for group in lists]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    members = np.concatenate(lists) if lists else np.zeros(0, dtype=np.int64)
    return members.astype(np.int64), starts


def _check_range(members: Columns, starts: Columns, n_features: int, owner: str) -> None:
    empty = np.flatnonzero(np.diff(starts) == 0)
    if empty.size:
        raise ValueError(f"{owner}: group {int(empty[0])} is empty; remove it")
    outside = np.flatnonzero((members < 0) | (members >= n_features))
    if outside.size:
        place = int(outside[0])
        group = int(np.searchsorted(starts, place, side="right")) - 1
        raise ValueError(
            f"{owner}: group {group} names feature {int(members[place])}, but features are "
            f"numbered 0 to {n_features - 1}; check the groups against the columns of X"
        )


def _sorted_distinct(members: Columns, starts: Columns, owner: str) -> Columns:
    """Return the members increasing within each set; a repeat is refused."""
    steps = np.diff(members)
    inside = np.ones(steps.size, dtype=bool)
    inside[starts[1:-1] - 1] = False
    if (steps[inside] <= 0).any():
        labels = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        members = members[np.lexsort((members, labels))]
        repeated = np.flatnonzero((np.diff(members) == 0) & inside)
        if repeated.size:
            place = int(repeated[0])
            raise ValueError(
                f"{owner}: group {int(labels[place])} holds feature {int(members[place])} twice; "
                "list each feature of a group once"
            )
    return members


def _with_singletons(
    members: Columns, starts: Columns, names: tuple[str, ...] | None, n_features: int
) -> Membership:
    covered = np.zeros(n_features, dtype=bool)
    covered[members] = True
    alone = np.flatnonzero(~covered)
    n_listed = starts.size - 1
    if alone.size:
        members = np.concatenate([members, alone])
        starts = np.concatenate([starts, starts[-1] + 1 + np.arange(alone.size)])
    return Membership(members, starts, n_listed, names)
