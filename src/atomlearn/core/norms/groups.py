"""Groups: the group lasso norm sum_g weight_g ||w_g||_2 over disjoint groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Form, Norm, ProxPoint, Scores
from atomlearn.core.norms.lift import GroupedNorm, best_groups, groups_above, lifted_point
from atomlearn.core.norms.names import named_groups
from atomlearn.core.norms.partition import Partition
from atomlearn.core.norms.restricted import Restricted
from atomlearn.core.norms.threshold import weighted_l1_point
from atomlearn.core.norms.vectors import to_float64


class Groups(GroupedNorm):
    """gauge(w) = sum_g weight_g ||w_g||_2 over disjoint groups; polar max_g ||z_g||_2 / weight_g.

    Its squared form, (level / 2) (sum_g ||w_g||)^2, is the sub-problem of feature generation, and
    its prox the Moreau projection of Tan, Tsang, Wang (2014), Algorithm 3.

    Parameters
    ----------
    groups : list of index lists, or label array
        Disjoint groups of columns; a column in no list, or with a negative label, is a group of
        its own. Lists may name columns, or patterns of them ("dose_*"), where X has names.
    weights : None, "sqrt_size" or array-like
        One weight > 0 for each listed group, in the order of the lists, or in the sorted order
        of the labels. None: all ones. "sqrt_size": the square root of the number of columns,
        which keeps large groups from being cheaper for each column. Columns in no group have
        weight 1.

    References
    ----------
    Yuan, Lin (2006), Model selection and estimation in regression with grouped variables,
    doi:10.1111/j.1467-9868.2005.00532.x

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.Groups([[0, 2]]).value(np.array([3.0, 0.0, -4.0]))
    5.0
    """

    def __init__(self, groups: Any, weights: Any = None) -> None:
        self.groups = groups
        self.weights = weights

    def check(self, n_features: int) -> None:
        """Raise where groups overlap or do not fit, or a weight is not positive and finite."""
        self.parts(n_features)

    def on(self, n_features: int) -> Groups:
        """The same norm with its groups and weights read."""
        return self._read_once(n_features, self._on)

    def _on(self, n_features: int) -> Groups:
        partition, weights = self.parts(n_features)
        listed = partition.all_listed()
        return self if listed is self.groups else Groups(listed, weights)

    def as_groups(self, n_features: int) -> Groups:
        """The norm itself, its groups read."""
        return self.on(n_features)

    def times(self, factor: float) -> Groups | None:
        """The same groups with their weights multiplied, once they are read."""
        if not isinstance(self.groups, Partition):
            return None
        partition, weights = self.parts(self.groups.labels.size)
        own = np.ones(partition.n_groups) if weights is None else weights
        return Groups(partition.all_listed(), factor * own)

    def value(self, w: Array) -> float:
        """sum_g weight_g ||w_g||_2"""
        w = to_float64(w)
        partition, weights = self.parts(w.size)
        norms = partition.norms(w)
        return float(norms.sum() if weights is None else np.dot(weights, norms))

    def polar(self, scores: Scores) -> float:
        """max_g ||z_g||_2 / weight_g"""
        partition, weights = self.parts(scores.n_columns)
        norms = partition.norms_of_scores(scores)
        return float((norms if weights is None else norms / weights).max(initial=0.0))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Whole groups of largest ||z_g||_2 / weight_g, until there are ``count`` columns."""
        partition, weights = self.parts(scores.n_columns)
        return best_groups(scores, partition, weights, 1, count)

    def reference(self, scores: Scores) -> float:
        """The largest ||z_g||_2 / weight_g."""
        return self.polar(scores)

    def rated(self, scores: Scores, bound: float) -> Columns:
        """Whole groups with ||z_g||_2 / weight_g of at least the bound."""
        partition, weights = self.parts(scores.n_columns)
        return groups_above(scores, partition, weights, bound)

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        partition, weights = self.parts(v.size)
        return lifted_point(
            v, partition, lambda norms: weighted_l1_point(norms, weights, amount, form)
        )

    def l1_weights(self, n_features: int) -> Array | None:
        """Those of the groups, where each has one column; else None."""
        partition, weights = self.parts(n_features)
        if partition.n_groups < n_features:
            return None
        return np.ones(n_features) if weights is None else weights[partition.labels]

    def adapted(self, w: Array, power: float) -> Norm:
        """The same groups with weights divided by ||w_g||^power, those with w_g != 0 only."""
        partition, weights = self.parts(w.size)
        sizes = partition.norms(to_float64(w))
        own = np.ones(partition.n_groups) if weights is None else weights
        used = sizes > 0
        if not used.any():
            raise ValueError(
                "adaptive weights need a first fit that selects something; use a smaller alpha"
            )
        new = np.divide(own, sizes**power, out=np.ones(sizes.size), where=used)
        kept = np.flatnonzero(used[partition.labels])
        return Restricted(Groups(partition.all_listed(), new), kept)

    def restrict(self, columns: Columns, n_features: int) -> Groups:
        """The same norm over these columns, with the weights of the groups they touch."""
        partition, weights = self.parts(n_features)
        restricted, kept = partition.restrict(columns)
        return Groups(restricted, None if weights is None else weights[kept])

    def with_names(self, names: Sequence[str]) -> Groups:
        """Return the same norm with names and patterns of columns replaced by their indices."""
        groups = named_groups(self.groups, names, "Groups")
        return self if groups is self.groups else Groups(groups, self.weights)

    def parts(self, n_features: int) -> tuple[Partition, Array | None]:
        """Return the partition and one weight for each of its groups (None: all ones)."""
        partition = self.partition(n_features)
        if self.weights is None:
            return partition, None
        # A partition whose groups are all listed was read before, and its weights with it.
        if partition is self.groups and partition.n_listed == partition.n_groups:
            return partition, np.asarray(self.weights, dtype=np.float64)
        if isinstance(self.weights, str):
            weights = self._named_weights(partition)
        else:
            weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (partition.n_listed,):
            raise ValueError(
                f"Groups: weights must hold one number for each of the {partition.n_listed} "
                f"groups, got shape {weights.shape}; give one a group, 'sqrt_size', or None "
                "for all ones"
            )
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            position = int(np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))[0])
            raise ValueError(
                f"Groups: weights[{position}] is {weights[position]}, but weights must be positive "
                "and finite; name columns without a penalty in unpenalized="
            )
        missing = partition.n_groups - partition.n_listed
        return partition, np.concatenate([weights, np.ones(missing)])

    def _named_weights(self, partition: Partition) -> Array:
        """Return the weights that a name stands for, one a listed group."""
        if self.weights != "sqrt_size":
            raise ValueError(
                f"Groups: weights must be 'sqrt_size', one number a group, or None for all ones; "
                f"got {self.weights!r}"
            )
        return np.sqrt(partition.sizes[: partition.n_listed].astype(np.float64))
