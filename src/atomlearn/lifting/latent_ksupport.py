"""LatentKSupport: the k-support norm over groups that overlap, or over the groups of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Columns, Lift, Scores, whole_number
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.norms.names import needs_names, resolved
from atomlearn.core.norms.vectors import l2_norm
from atomlearn.lifting.expansion import Selection
from atomlearn.lifting.latent import LatentNorm, LiftedNorm
from atomlearn.lifting.membership import Membership, membership_of
from atomlearn.lifting.segments import Segments
from atomlearn.lifting.trees import TreeGroups, forest_of


class LatentKSupport(LiftedNorm):
    """gauge(w) = min { k-support norm of (||z_B||_2)_B : w = sum_B z_B, z_B zero outside B }.

    The k-support norm over groups whose features overlap: each set has a copy of its features, as
    in [T] sections 2.3 and 4.3, and an atom is a unit vector over the copies of k sets. The polar
    is the l2 norm of the k largest ||z_B||_2. With k = 1 it is ``LatentGroups``, with disjoint sets
    ``KSupport(k, groups)``.

    Parameters
    ----------
    k : int >= 1
        Sets of an atom. More than there are acts as all of them.
    groups : as for LatentGroups, or a norm of sets
        The sets; a feature in none is a set of its own. A norm such as ``Trees(...)``,
        ``Chains(8)`` or ``Hierarchy()`` stands for its sets (its weights are left out). The sets of
        ``Trees`` are searched from the root down: a set's score bounds those of the sets inside,
        so a subtree is left out once its root cannot enter the k best ([T] Remark 2).

    Notes
    -----
    With ``solvers.FeatureGeneration`` a pass takes the k best sets as one block, and
    ``FeatureGenerator(groups=...)`` selects by this norm where groups overlap. A set that holds
    another never has the smaller score: in a tree the largest sets come first.

    References
    ----------
    [T] M. Tan, I. W. Tsang, L. Wang 2014, sections 2.3 and 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norm = norms.LatentKSupport(2, [[0, 1], [1, 2], [3]])
    >>> norm.polar([3.0, 0.0, 1.0, 4.0]), norm.polar([0.0, 3.0, 0.0, 4.0])
    (5.0, 5.0)
    """

    def __init__(self, k: int, groups: Any) -> None:
        self.k = k
        self.groups = groups

    @property
    def absolute(self) -> bool:
        """True: with w also its best parts have the signs of w."""
        return True

    usual_form = "squared"

    @property
    def _latent(self) -> LatentNorm | None:
        """The latent norm whose sets these are, where one was given."""
        return self.groups if isinstance(self.groups, LatentNorm) else None

    def membership(self, n_features: int) -> Membership:
        """Return the sets, every feature in one at least."""
        latent = self._latent
        if latent is not None:
            return latent.membership(n_features)
        if needs_names(self.groups):
            raise TypeError(
                "LatentKSupport: groups name columns, but the columns of X have no names; pass X "
                "as a data frame, or indices"
            )
        return membership_of(self.groups, n_features, "LatentKSupport")

    def with_names(self, names: Sequence[str]) -> LatentKSupport:
        """Return the same norm with names and patterns of columns replaced by their indices."""
        latent = self._latent
        if latent is not None:
            return LatentKSupport(self.k, latent.with_names(names))
        if not needs_names(self.groups):
            return self
        return LatentKSupport(self.k, resolved(self.groups, names, "LatentKSupport", "error"))

    def lift(self, n_features: int) -> Lift:
        """Return L, which repeats each feature once for every set, and the norm over the sets."""
        k, sets = whole_number("LatentKSupport", "k", self.k), self.membership(n_features)
        norm = KSupport(k, Segments(sets.starts))
        if self._latent is not None and self._latent.nested:
            forest = forest_of(sets, n_features)
            norm = TreeKSupport(k, TreeGroups(Segments(sets.starts), np.ones(sets.n_sets), forest))
        return Lift(Selection(sets.members, n_features), norm, sets.names)


class TreeKSupport(KSupport):
    """The k-support norm over the sets of a tree, the best of them found from the root."""

    def __init__(self, k: int, tree: TreeGroups) -> None:
        super().__init__(k, tree.groups)
        self.tree = tree

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return k and the tree."""
        return {"k": self.k, "tree": self.tree}

    def on(self, n_features: int) -> KSupport:
        """The norm itself: its groups are read."""
        self.check(n_features)
        return self

    def polar(self, scores: Scores) -> float:
        """The l2 norm of the k largest ||z_B||_2, found without looking at all sets."""
        if scores.base is None:
            return super().polar(scores)
        best = self.tree.search(scores, self._k(self.tree.forest.parents.size))
        return l2_norm(self.tree.ratings(scores)[best])

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """The coordinates of the k best sets, and of further ones until there are ``count``."""
        if scores.base is None:
            return super().best_columns(scores, count)
        partition = self.partition(scores.n_columns)
        k = self._k(partition.n_groups)
        chosen = self.tree.search(scores, min(max(k, count), partition.n_groups))
        filled = int(np.searchsorted(np.cumsum(partition.sizes[chosen]), count)) + 1
        return partition.members(chosen[: max(k, filled)])
