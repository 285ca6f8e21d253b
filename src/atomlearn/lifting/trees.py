"""Trees: latent group norm for tree-structured (nested or disjoint) groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.core import Membership, Nested, SearchWork, check_members
from atomlearn.lifting.latent import LatentGroups


class Trees(LatentGroups):
    """Latent group norm for tree-structured groups: any two are nested or disjoint.

    Features are the leaves of the trees and groups their nodes: taxa of a phylogeny, regions of an
    image pyramid, levels of an ontology. The support of a solution is a union of groups of any
    level, so that the resolution adapts to the signal. The polar at z is max_B ||z restricted to
    B||_2 / delta_B. [T] Definition 1

    Parameters
    ----------
    groups : groups of LatentGroups
        Sets of features, nested or disjoint; a feature in no set is a tree by itself.
    weights : None, "sqrt_size", array-like or mapping
        Weights delta_B of the listed groups. With equal weights a group never has a larger score
        than its parent; "sqrt_size" favors small groups if the signal is concentrated.
    missing : {"error", "ignore"}
        Whether a column name that X does not have is an error or is ignored.

    Notes
    -----
    Squared scores are summed over cells of features with the same groups, so that trees also work
    with designs that never list all scores, such as all pairs of columns. The best groups are
    searched from the roots; the groups inside a group that cannot be among the best are skipped.
    [T] Remark 2. The history of a result counts the share that was skipped (``Record.skipped``).

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

    @classmethod
    def from_parents(cls, parents: Any, nodes: Any = None, weights: Any = None) -> Trees:
        """Return the norm of the tree in which ``parents[i]`` is the parent of node i, -1 at roots.

        Parameters
        ----------
        parents : (n_nodes,) int
        nodes : (n_features,) int, optional
            The node of each feature; None: node j for feature j. The group of a node contains the
            features at this node and at its descendants. Nodes without features are dropped.
        weights : (n_nodes,), optional
            Weight delta_B of the group of each node; None: all 1.

        Returns
        -------
        Trees
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
                    f"Trees.from_parents: {name} must be in {low}..{parents.size - 1}, got values "
                    f"from {array.min()} to {array.max()}"
                )
        # Collect pairs (node, feature): each feature at its own node, then at the parent of that
        # node, and so on up to the roots.
        ancestors = nodes
        feature = np.arange(nodes.size)
        total = nodes.size
        pairs = [(ancestors, feature)]
        while ancestors.size:
            check_members(total, "Trees.from_parents")
            if len(pairs) > parents.size:
                raise ValueError("Trees.from_parents: the parents form a cycle; roots have -1")
            parent_of = parents[ancestors]
            ancestors = parent_of[parent_of >= 0]
            feature = feature[parent_of >= 0]
            pairs.append((ancestors, feature))
            total += ancestors.size
        # Group the pairs by node. Nodes without features have no group. Without any pairs, np.split
        # returns one empty group, which is cut off.
        owners, members = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
        order = np.lexsort((members, owners))
        used_nodes, first = np.unique(owners[order], return_index=True)
        groups = [group.tolist() for group in np.split(members[order], first[1:])][
            : used_nodes.size
        ]
        if np.ndim(weights):
            weights = np.asarray(weights)[used_nodes]
        return cls(groups, weights)

    def nested(self, sets: Membership, n_features: int) -> Nested:
        """Return the tree of the groups, and its cells of features with the same groups.

        ``sets`` are the groups over ``n_features`` features. Raise ValueError if two groups overlap
        without being nested.
        """
        labels = sets.labels
        sizes = sets.sizes
        # Sort the groups of each feature by size, and groups of equal size by number: each group
        # is then followed by its parent.
        order = np.lexsort((labels, sizes[labels], sets.members))
        group = labels[order]
        feature = sets.members[order]
        follows = feature[1:] == feature[:-1]
        parent = np.full(group.size, -1, dtype=np.int64)
        parent[:-1][follows] = group[1:][follows]
        parents = np.full(sets.n_sets, -1, dtype=np.int64)
        parents[group] = parent
        # If any two groups are nested or disjoint, a group has the same parent for each feature.
        wrong = np.flatnonzero(parents[group] != parent)
        if wrong.size:
            child = int(group[wrong[0]])
            other = int(max(parent[wrong[0]], parents[child]))
            raise ValueError(
                f"Trees: groups {child} and {other} overlap without one being inside the other; "
                "use LatentGroups for groups that overlap freely"
            )
        # Features with the same smallest group have all groups in common and form one cell.
        smallest = group[np.diff(feature, prepend=-1) != 0]
        _, examples, cells = np.unique(smallest, return_index=True, return_inverse=True)
        # Which cells are in each group: the 0-1 matrix of groups and features (CSR), of which one
        # example feature of each cell is kept.
        entries = np.ones(sets.members.size), sets.members, sets.starts
        in_group = sparse.csr_array(entries, shape=(sets.n_sets, n_features))[:, examples]
        cell_of_feature = cells.ravel().astype(np.int64)
        return Nested(labels, cell_of_feature, in_group, sizes, parents, SearchWork())
