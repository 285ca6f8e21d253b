"""LatentKSupport: the k-support norm over groups that overlap, or over the groups of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atomlearn.core.interfaces import Norm, whole_number
from atomlearn.core.interfaces.lift import Nested
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.norms.partition import Membership, Partition
from atomlearn.lifting.latent import LatentGroups, LatentNorm


class LatentKSupport(LatentNorm):
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
        ``Chains(8)`` or ``Hierarchy()`` stands for its sets (its weights are left out).

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

    usual_form = "squared"

    def __init__(self, k: int, groups: Any) -> None:
        self.k = k
        self.groups = groups

    @property
    def _latent(self) -> LatentNorm:
        """The norm whose sets these are."""
        return self.groups if isinstance(self.groups, LatentNorm) else LatentGroups(self.groups)

    def membership(self, n_features: int) -> Membership:
        """Return the sets, each feature in one; sets beyond ``n_listed`` are lone features."""
        return self._latent.membership(n_features)

    def nested(self, sets: Membership, n_features: int) -> Nested | None:
        """As the norm whose sets these are."""
        return self._latent.nested(sets, n_features)

    def with_names(self, names: Sequence[str]) -> LatentKSupport:
        """Return the same norm with names and patterns of columns replaced by their indices."""
        latent = self._latent
        known = latent.with_names(names)
        return self if known is latent else LatentKSupport(self.k, known)

    def _over(self, partition: Partition, sets: Membership) -> Norm:
        return KSupport(whole_number("LatentKSupport", "k", self.k), partition)
