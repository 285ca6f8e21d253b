"""Groups of features, overlapping (Membership) or disjoint (Partition), parsed from user input."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn._support import numbered, ranges
from atomlearn.core.interfaces import Array, Columns, Scores
from atomlearn.core.interfaces.scores import ArrayScores, norms_by_label
from atomlearn.core.norms.names import needs_names


@dataclass(frozen=True, slots=True)
class Membership:
    """Sets of features that may overlap, in compressed form.

    Set g consists of the features members[starts[g]:starts[g + 1]], at least one, in increasing
    order.

    Attributes
    ----------
    members : (m,) int64
        The features of all sets, set after set; m is the sum of the sizes.
    starts : (n_sets + 1,) int64
        The position in ``members`` where each set starts, and m.
    n_listed : int
        The number of sets that the user gave. They come first. Each other feature is
        a set of one, and these sets follow.
    names : tuple[str, ...], optional
        The names of the listed sets, or None.
    """

    members: Columns
    starts: Columns
    n_listed: int
    names: tuple[str, ...] | None = None

    @property
    def labels(self) -> Columns:
        """The number of the set that each entry of ``members`` belongs to, (m,)."""
        return np.repeat(np.arange(self.n_sets, dtype=np.int64), self.sizes)

    @property
    def n_sets(self) -> int:
        """Number of sets, those of single features included."""
        return self.starts.size - 1

    @property
    def sizes(self) -> Columns:
        """Number of features of each set, (n_sets,)."""
        return np.diff(self.starts)

    @classmethod
    def of(cls, groups: Any, n_features: int, owner: str) -> Membership:
        """Return sets of column indices as a Membership; names must have been resolved before.

        groups : a list of index lists, a mapping from set names to index lists, a boolean matrix or
        a sparse matrix of shape (n_features, n_sets), or a Membership. owner : the name of the
        norm, which begins the messages of errors.
        """
        # A Membership is only checked against the number of features.
        if isinstance(groups, Membership):
            _checked_members(groups, n_features, owner)
            return groups
        if needs_names(groups):
            raise TypeError(
                f"{owner}: groups name columns, but the columns of X have no names; pass X as a "
                "data frame, or indices"
            )
        # The members and starts of the listed sets, whichever of these types ``groups`` has.
        names = None
        if isinstance(groups, Mapping):
            names = tuple(str(name) for name in groups)
            groups = list(groups.values())
        if sparse.issparse(groups) or (isinstance(groups, np.ndarray) and groups.ndim == 2):
            members, starts = _matrix_groups(groups, n_features, owner)
        elif is_listing(groups):
            lists = [_index_list(g, number, owner) for number, g in enumerate(groups)]
            check_members(sum(group.size for group in lists), owner)
            members = np.concatenate([np.zeros(0, dtype=np.int64), *lists])
            starts = np.cumsum([0, *(group.size for group in lists)])
        else:
            raise TypeError(
                f"{owner}: groups must be index lists such as [[0, 1], [1, 2]], a membership "
                f"matrix, or a mapping from names to lists, got {groups!r}"
            )
        sets = cls(members, starts.astype(np.int64), starts.size - 1, names)
        members = _checked_members(sets, n_features, owner)
        # Each feature in no set becomes a set of one.
        singletons = np.flatnonzero(np.bincount(members, minlength=n_features) == 0)
        members = np.concatenate([members, singletons])
        starts = np.concatenate([starts, starts[-1] + 1 + np.arange(singletons.size)]).astype(
            np.int64
        )
        return cls(members, starts, sets.n_listed, names)


#: Maximum total number of members of sets; about 130 bytes each are needed temporarily (4 GB).
MOST_MEMBERS = 2**25


def check_members(total: int, owner: str) -> None:
    """Raise ValueError if the sets have more than ``MOST_MEMBERS`` members in total.

    owner : the name of the norm, which begins the message.
    """
    if total > MOST_MEMBERS:
        raise ValueError(
            f"{owner}: the groups have more than {MOST_MEMBERS:,} members in all, a feature "
            "counted once for each group that holds it; give fewer or smaller groups, such as "
            "every tenth level of a deep tree"
        )


def _matrix_groups(groups: Any, n_features: int, owner: str) -> tuple[Columns, Columns]:
    """Return the members and starts of the groups of a membership matrix.

    groups : (n_features, n_groups), boolean or sparse; each column is a group. The results have the
    form of ``Membership``. owner : the name of the norm, for errors.
    """
    if isinstance(groups, np.ndarray) and groups.dtype != np.bool_:
        raise TypeError(
            f"{owner}: a dense membership matrix must be boolean, of shape (n_features, n_groups); "
            f"got dtype {groups.dtype}; pass groups.astype(bool), or a list of index lists"
        )
    if groups.shape[0] != n_features:
        raise ValueError(
            f"{owner}: a membership matrix has one row a feature and one column a group; got "
            f"shape {groups.shape} for {n_features} features; transpose it if need be"
        )
    columns = sparse.csc_array(groups, copy=True)
    columns.eliminate_zeros()
    return columns.indices.astype(np.int64), columns.indptr.astype(np.int64)


def _index_list(group: Any, number: int, owner: str) -> Columns:
    """Return the column indices of one group as an int64 array.

    number : the position of the group in the list, for errors; owner : the name of the norm.
    """
    if not is_listing(group) or isinstance(group, set | frozenset | Mapping):
        raise TypeError(
            f"{owner}: group {number} must be a list of column indices, got {group!r}; "
            "pass [[0, 1], [2, 3]], or one label a feature"
        )
    members = np.asarray(group)
    if members.size and (members.ndim != 1 or members.dtype.kind not in "iu"):
        raise TypeError(
            f"{owner}: group {number} must hold whole column indices, got dtype "
            f"{members.dtype} of shape {members.shape}; pass a list of int"
        )
    return members.astype(np.int64)


def _checked_members(sets: Membership, n_features: int, owner: str) -> Columns:
    """Return the members of the sets, increasing within each set.

    Raises ValueError if a set is empty, a feature does not exist, or a set has a feature twice.
    owner : the name of the norm, for errors. n_features : the number of all columns.
    """
    empty = np.flatnonzero(sets.sizes == 0)
    if empty.size:
        raise ValueError(f"{owner}: group {int(empty[0])} is empty; remove it")
    members = sets.members
    labels = sets.labels
    # Features that do not exist.
    outside = np.flatnonzero((members < 0) | (members >= n_features))
    if outside.size:
        position = int(outside[0])
        raise ValueError(
            f"{owner}: group {int(labels[position])} names feature {int(members[position])}, but "
            f"features are numbered 0 to {n_features - 1}; check the groups against the columns "
            "of X"
        )

    # Sort by set, and within a set by feature; equal neighbours are then repeated features.
    members = members[np.lexsort((members, labels))]
    repeated = np.flatnonzero((np.diff(members) == 0) & (np.diff(labels) == 0))
    if repeated.size:
        position = int(repeated[0])
        raise ValueError(
            f"{owner}: group {int(labels[position])} holds feature {int(members[position])} twice; "
            "list each feature of a group once"
        )
    return members


def is_listing(value: object) -> bool:
    """Return whether ``value`` can be iterated over and is not a string."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def set_weights(weights: Any, sizes: Columns, n_listed: int, owner: str) -> Array:
    """Return the weight of every set, in [0, inf]: those of listed sets, then 1 for others.

    weights : None for ones, "sqrt_size" for the square roots of the sizes, or ``n_listed`` numbers.
    sizes : the number of features of each set. owner : the name of the norm, for errors.
    """
    if weights is None:
        return np.ones(sizes.size)
    if isinstance(weights, str):
        if weights != "sqrt_size":
            raise ValueError(
                f"{owner}: weights must be 'sqrt_size', one number a group, or None for all ones; "
                f"got {weights!r}"
            )
        weights = np.sqrt(sizes[:n_listed])  # the listed sets come first
    listed = np.asarray(weights, dtype=np.float64)
    if listed.shape != (n_listed,):
        raise ValueError(
            f"{owner}: weights must hold one number for each of the {n_listed} groups, got shape "
            f"{listed.shape}; give one a group, 'sqrt_size', or None for all ones"
        )
    # Negative weights, and NaN, for which every comparison is false.
    bad = np.flatnonzero(~(listed >= 0))
    if bad.size:
        raise ValueError(
            f"{owner}: weights[{int(bad[0])}] is {listed[bad[0]]}, but weights must be >= 0 "
            "(0: unpenalized, inf: left out)"
        )
    return np.concatenate([listed, np.ones(sizes.size - n_listed)])


class Partition:
    """Disjoint groups that cover all features.

    labels : (n_features,) int64, the group of each feature, in 0..n_groups-1, with no empty group.
    n_listed : the number of groups that the user listed. They come first, in the user's order; the
    others have one feature each.
    """

    def __init__(self, labels: Columns, n_groups: int, n_listed: int) -> None:
        """Store the group of each feature, and the numbers of all and of listed groups."""
        self.labels = labels
        self.n_groups = n_groups
        self.n_listed = n_listed

    @classmethod
    def of(cls, groups: Any, n_features: int, owner: str) -> Partition:
        """Return groups of ``n_features`` features as a Partition.

        groups : index lists, a label array, or a Partition. owner : the name of the norm. Raises
        ValueError or TypeError if the groups do not fit the features.
        """
        if isinstance(groups, Partition):
            if groups.labels.size != n_features:
                raise ValueError(
                    f"{owner}: the groups describe {groups.labels.size} features, but there are "
                    f"{n_features}; pass groups of these features"
                )
            return groups
        if _is_labels(groups):
            return cls._from_labels(np.asarray(groups), n_features, owner)
        if type(groups) is np.ndarray and groups.dtype.kind in "iu":
            groups = list(groups)  # A 2-d integer array lists groups of equal size, one per row.
        return cls._from_sets(Membership.of(groups, n_features, owner), owner)

    @classmethod
    def _from_labels(cls, labels: NDArray[Any], n_features: int, owner: str) -> Partition:
        """Return the groups of the features with equal labels, in the order of sorted labels.

        labels : one integer or string for each feature; negative integers mark features in no
        group. owner : the name of the norm, for errors. n_features : the number of all columns.
        """
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
        is_single = labels < 0 if labels.dtype.kind == "i" else np.zeros(labels.size, dtype=bool)
        names, codes = np.unique(labels[~is_single], return_inverse=True)
        # Groups by sorted label come first, then the features in no group, one group each.
        result = np.empty(n_features, dtype=np.int64)
        result[~is_single] = codes.ravel()
        n_single = int(is_single.sum())
        result[is_single] = names.size + np.arange(n_single)
        return cls(result, names.size + n_single, names.size)

    @classmethod
    def _from_sets(cls, sets: Membership, owner: str) -> Partition:
        """Return the groups of disjoint sets that contain every feature.

        Raises ValueError if sets overlap; owner is the name of the norm for the message.
        """
        labels = sets.labels
        # The first position of feature 0, 1, ...; fewer positions than members means an overlap.
        first = np.unique(sets.members, return_index=True)[1]
        if first.size < sets.members.size:
            repeated = int(np.setdiff1d(np.arange(sets.members.size), first)[0])
            raise ValueError(
                f"{owner}: groups must be disjoint, but feature {int(sets.members[repeated])} "
                f"appears again in group {int(labels[repeated])}; remove it there, or use a norm "
                "for overlapping groups"
            )
        return cls(labels[first], sets.n_sets, sets.n_listed)

    def all_listed(self) -> Partition:
        """Return the same groups with singletons counted as listed groups.

        Norms use the result after their parameters have been checked, with one weight for each
        group, singletons included.
        """
        if self.n_listed == self.n_groups:
            return self
        return Partition(self.labels, self.n_groups, self.n_groups)

    @cached_property
    def sizes(self) -> Columns:
        """Number of features of each group, shape (n_groups,)."""
        return np.bincount(self.labels, minlength=self.n_groups).astype(np.int64)

    @cached_property
    def order(self) -> tuple[Columns, Columns]:
        """The features sorted by group, and the start of each group there, (n_groups + 1,)."""
        order = np.argsort(self.labels, kind="stable").astype(np.int64)
        return order, np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def ratings_of_scores(self, scores: Scores, weights: Array | None = None) -> Scores:
        """Return ||z_g||_2 / weight_g of each group g, as scores of the groups.

        scores : z, one for each feature. weights : (n_groups,); None: all ones.
        """
        if not self.n_groups:
            return ArrayScores(np.zeros(0))
        return scores.group_ratings(self.labels, self.n_groups, weights)

    def members(self, numbers_of_groups: Columns) -> Columns:
        """Return the features of some groups, group after group, increasing within each.

        numbers_of_groups : the numbers of these groups.
        """
        order, starts = self.order
        return np.asarray(order[ranges(starts[numbers_of_groups], self.sizes[numbers_of_groups])])

    def norms(self, w: Array) -> Array:
        """Return the l2 norm of w over each group, safe at any scale, shape (n_groups,)."""
        if not self.n_groups:
            return np.zeros(0)
        return norms_by_label(w, self.labels, self.n_groups)

    def restrict(self, columns: Columns) -> tuple[Partition, Columns]:
        """Return the groups restricted to features ``columns``, and the old number of each group.

        Groups without a kept feature are dropped. The kept features are renumbered 0, 1, ... in the
        order of ``columns``.
        """
        groups, labels = numbered(self.labels[columns], self.n_groups)
        return Partition(labels, groups.size, groups.size), groups

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same groups, listed in the same number."""
        if not isinstance(other, Partition):
            return NotImplemented
        return self.n_listed == other.n_listed and np.array_equal(self.labels, other.labels)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return the numbers of features and groups as text."""
        return f"Partition({self.labels.size} features in {self.n_groups} groups)"


def _is_labels(groups: Any) -> bool:
    """Return whether ``groups`` has one label for each feature, and not lists of features.

    Labels are a one-dimensional array, or a list of numbers or strings.
    """
    if isinstance(groups, np.ndarray) and groups.dtype != object:
        return groups.ndim == 1
    if not is_listing(groups) or isinstance(groups, Mapping) or sparse.issparse(groups):
        return False
    # The items of a list of labels are numbers or strings, not lists.
    items = list(groups)
    return bool(items) and all(
        isinstance(item, numbers.Number | np.generic | str) for item in items
    )
