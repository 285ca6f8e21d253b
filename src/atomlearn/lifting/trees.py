"""Trees: latent groups that are nested or disjoint, searched from the root down with pruning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Scores
from atomlearn.core.norms.groups import Groups
from atomlearn.lifting.latent import LatentGroups
from atomlearn.lifting.membership import Membership
from atomlearn.lifting.segments import Segments


@dataclass(frozen=True, slots=True)
class Forest:
    """parents : (n_sets,) the smallest set around each, -1 at roots; home : (n_features,) the
    smallest set of each feature; levels : sets by depth, roots first.
    """

    parents: Columns
    home: Columns
    levels: tuple[Columns, ...]

    def squares(self, scores: Scores) -> Array:
        """Return sum of z_j^2 over each set, from the leaves up: O(n_sets) beyond group norms.

        Implicit designs know the norms of their own groups without listing z.
        """
        sums = scores.group_norms(self.home, self.parents.size) ** 2
        for level in reversed(self.levels[1:]):
            np.add.at(sums, self.parents[level], sums[level])
        return sums

    def lightest(self, weights: Array) -> Array:
        """Return the least weight among each set and the sets inside it."""
        least = weights.copy()
        for level in reversed(self.levels[1:]):
            np.minimum.at(least, self.parents[level], least[level])
        return least


class Trees(LatentGroups):
    """Latent groups of which any two are nested or disjoint ([T] Definition 1).

    Features at the leaves, ever larger groups around them: taxa of a phylogeny, regions of an
    image pyramid, levels of an ontology. A solution is a union of groups of any level, so it picks
    the resolution at which the signal lives. Polar max_B ||z_B||_2 / delta_B.

    Parameters
    ----------
    groups : as for LatentGroups
        Sets of features, nested or disjoint; features in none are roots of their own.
    weights : None, "sqrt_size", array-like or mapping
        delta_B, one a listed group. With equal weights a group never beats the group around it;
        "sqrt_size" lets small groups win where the signal is concentrated.
    missing : {"error", "ignore"}
        What to do with names of columns that X does not have.

    Notes
    -----
    A group's score bounds those of the groups inside it (relative to the lightest of them), so
    a subtree is left out of the search once its root cannot enter the best ones ([T] section 4.3).
    Scores are summed from the leaves up, O(n_features + number of groups), however deep the tree.

    References
    ----------
    Jenatton, Mairal, Obozinski, Bach (2011), JMLR 12; Kim, Xing (2012), doi:10.1214/12-AOAS549.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norm = norms.Trees([[0, 1, 2], [1, 2]], weights=[1.5, 1.0])
    >>> round(norm.value(np.array([0.0, 3.0, 4.0])), 6)
    5.0
    """

    nested: ClassVar[bool] = True

    @classmethod
    def from_parents(cls, parents: Any, nodes: Any = None, weights: Any = None) -> Trees:
        """Return the norm of a tree given by the parent of each node (-1 at roots).

        ``nodes``: the node at which each feature sits, by default feature j at node j. The group
        of a node holds the features at it and below it; nodes without any are left out, with
        their weight.
        """
        parents = np.asarray(parents)
        nodes = np.arange(parents.size) if nodes is None else np.asarray(nodes)
        for name, array, low in (("parents", parents, -1), ("nodes", nodes, 0)):
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise TypeError(
                    f"Trees.from_parents: {name} must be a list of whole numbers, got dtype "
                    f"{array.dtype} of shape {array.shape}"
                )
            if array.size and not low <= int(array.min()) <= int(array.max()) < parents.size:
                raise ValueError(
                    f"Trees.from_parents: {name} must lie in {low}..{parents.size - 1}, got values "
                    f"from {array.min()} to {array.max()}"
                )
        groups: list[list[int]] = [[] for _ in range(parents.size)]
        for feature, node in enumerate(nodes.tolist()):
            steps = 0
            while node >= 0:
                groups[node].append(feature)
                node, steps = int(parents[node]), steps + 1
                if steps > parents.size:
                    raise ValueError("Trees.from_parents: the parents form a cycle; roots have -1")
        kept = [node for node, group in enumerate(groups) if group]
        if weights is not None and not isinstance(weights, str):
            weights = np.asarray(weights)[kept]
        return cls([groups[node] for node in kept], weights)

    def _groups(self, sets: Membership, n_features: int) -> TreeGroups:
        delta = self._delta(sets)
        weights = np.ones(sets.n_sets) if delta is None else delta
        return TreeGroups(Segments(sets.starts), weights, forest_of(sets, n_features))


def forest_of(sets: Membership, n_features: int) -> Forest:
    """Return who is inside whom; raise ValueError where two groups overlap without nesting."""
    sizes = sets.sizes
    labels = np.repeat(np.arange(sets.n_sets, dtype=np.int64), sizes)
    # Around each feature: its sets from the smallest to the largest (of equal ones by number).
    order = np.lexsort((labels, sizes[labels], sets.members))
    inner, feature = labels[order], sets.members[order]
    follows = feature[1:] == feature[:-1]
    outer = np.full(inner.size, -1, dtype=np.int64)
    outer[:-1][follows] = inner[1:][follows]
    parents = np.full(sets.n_sets, -1, dtype=np.int64)
    parents[inner] = outer
    wrong = np.flatnonzero(parents[inner] != outer)
    if wrong.size:
        child = int(inner[wrong[0]])
        other = int(max(outer[wrong[0]], parents[child]))
        raise ValueError(
            f"Trees: groups {child} and {other} overlap without one being inside the other; use "
            "LatentGroups for groups that overlap freely"
        )
    first = np.concatenate([[True], ~follows]) if inner.size else np.zeros(0, dtype=bool)
    home = np.zeros(n_features, dtype=np.int64)
    home[feature[first]] = inner[first]
    return Forest(parents, home, _levels(parents))


def _levels(parents: Columns) -> tuple[Columns, ...]:
    depth = np.full(parents.size, -1, dtype=np.int64)
    depth[parents < 0] = 0
    for _ in range(parents.size):
        unknown = np.flatnonzero(depth < 0)
        if not unknown.size:
            break
        above = depth[parents[unknown]]
        depth[unknown[above >= 0]] = above[above >= 0] + 1
    return tuple(np.flatnonzero(depth == d) for d in range(int(depth.max(initial=-1)) + 1))


class TreeGroups(Groups):
    """The group norm over the memberships of a tree, whose best groups are found from the root."""

    def __init__(self, groups: Segments, weights: Array, forest: Forest) -> None:
        super().__init__(groups, weights)
        self.forest = forest
        self._lightest = forest.lightest(weights)
        #: Sets whose score was looked at in the last search (tests and curiosity).
        self.visited = 0

    def times(self, factor: float) -> TreeGroups:
        """The same groups with their weights multiplied."""
        return TreeGroups(self.groups, factor * self.weights, self.forest)

    def polar(self, scores: Scores) -> float:
        """max_B ||z_B||_2 / delta_B"""
        if scores.base is None:
            return super().polar(scores)
        best = self.search(scores, 1)
        return float(self.ratings(scores)[best].max(initial=0.0))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Whole groups of largest rating, until there are ``count`` columns."""
        if scores.base is None:
            return super().best_columns(scores, count)
        partition, _ = self.parts(scores.n_columns)
        # Groups of several columns: fewer are needed than columns are asked for.
        n_groups = max(1, count)
        chosen = self.search(scores, n_groups)
        filled = np.searchsorted(np.cumsum(partition.sizes[chosen]), count) + 1
        return partition.members(chosen[: max(1, int(filled))])

    def search(self, scores: Scores, count: int) -> Columns:
        """Return the ``count`` sets of largest rating, best first, without looking at all.

        Level by level; the sets inside one are looked at only where their bound, its score over
        the least weight inside, reaches the count-th best rating so far.
        """
        forest = self.forest
        ratings = self.ratings(scores)
        bounds = ratings * self.weights / self._lightest
        frontier = forest.levels[0] if forest.levels else np.zeros(0, dtype=np.int64)
        found = np.zeros(0, dtype=np.int64)
        self.visited = 0
        for depth in range(len(forest.levels)):
            self.visited += frontier.size
            found = np.concatenate([found, frontier])
            keep = np.lexsort((found, -ratings[found]))[:count]
            found = found[keep]
            if depth + 1 == len(forest.levels):
                break
            least = ratings[found[-1]] if found.size == count else -np.inf
            promising = np.zeros(forest.parents.size, dtype=bool)
            promising[frontier[bounds[frontier] >= least]] = True
            following = forest.levels[depth + 1]
            frontier = following[promising[forest.parents[following]]]
            if not frontier.size:
                break
        return found

    def ratings(self, scores: Scores) -> Array:
        """Return ||z_B||_2 / delta_B of every set, summed from the leaves up."""
        base = scores.base
        assert base is not None
        return scores.once(self, lambda: np.sqrt(self.forest.squares(base)) / self.weights)
