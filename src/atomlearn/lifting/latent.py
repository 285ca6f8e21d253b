"""Latent group norms for overlapping groups: w is a sum of vectors, each supported on one group."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from atomlearn._support import to_float64, whole_number
from atomlearn.core import (
    Array,
    Atom,
    Columns,
    Expansion,
    Groups,
    KSupport,
    Lift,
    Membership,
    Nested,
    Norm,
    Parameters,
    Partition,
    Scores,
    check_members,
    resolved,
    set_weights,
)
from atomlearn.lifting.value import lifted_value


class LiftedNorm(Parameters, Norm):
    """A norm defined by a lift: gauge(w) = inf { inner(u) : L u = w }.

    L (n_features, n_lifted) is a linear map and inner a simpler norm over the lifted coordinates
    u. Subclasses implement ``lift``, which returns L and inner. The polar of the gauge at z is the
    polar of inner at L'z, and the atoms are L a for the atoms a of inner.
    """

    @abstractmethod
    def lift(self, n_features: int) -> Lift:
        """Return the map L for ``n_features`` features and the inner norm, after checks."""

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """Return the norm with its lift for ``n_features`` computed once; check parameters.

        ``shape`` is ignored, as the features of a lifted norm are no matrix.
        """
        return Image(self, self.lift(n_features))

    def polar(self, scores: Scores) -> float:
        """Return the polar (dual norm) at z = ``scores``: the polar of the inner norm at L'z."""
        lift = self.lift(scores.n_columns)
        return lift.norm.polar(lift.expansion.scores(scores))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the distinct features of the ``count`` best lifted columns, best first.

        ``scores`` are z; the lifted columns are rated by L'z.
        """
        lift = self.lift(scores.n_columns)
        lifted = lift.norm.best_columns(lift.expansion.scores(scores), count)
        # Several lifted columns may be copies of one feature: keep the best copy.
        touched = lift.expansion.touched(lifted)
        _, first = np.unique(touched.rows, return_index=True)
        return touched.features[touched.rows[np.sort(first)]]

    def best_atom(self, scores: Scores) -> Atom:
        """Return L u for the atom u of the inner norm with the largest <u, L'z>; z = ``scores``."""
        lift = self.lift(scores.n_columns)
        atom = lift.norm.best_atom(lift.expansion.scores(scores))
        return Atom(*lift.expansion.apply(atom.columns, atom.values))

    def value(self, w: Array) -> float:
        """Return inf { inner(u) : L u = w }, w (n_features,), to a relative accuracy of 1e-8."""
        w = to_float64(w)
        return lifted_value(self.lift(w.size), w)


class Image(LiftedNorm):
    """A lifted norm bound to a given number of features, with its lift stored.

    Parameters
    ----------
    norm : Norm
        The norm as the user defined it.
    stored : Lift
        The lift of ``norm`` for the given number of features.
    """

    def __init__(self, norm: Norm, stored: Lift) -> None:
        """Store the lift with a copy of the norm, which later changes of the norm do not reach."""
        self.norm = copy.copy(norm)
        self.stored = stored

    @property
    def absolute(self) -> bool:  # type: ignore[override]
        """Whether the original norm depends only on absolute values; see ``Norm.absolute``."""
        return self.norm.absolute

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the original norm and the number of features; ``deep`` is ignored."""
        return {"norm": self.norm, "n_features": self.stored.expansion.shape[0]}

    def __repr__(self) -> str:
        """Return the expression that makes the original norm."""
        return repr(self.norm)

    def lift(self, n_features: int) -> Lift:
        """Return the stored lift; raise ValueError for another number of features."""
        if n_features != self.stored.expansion.shape[0]:
            raise ValueError(
                f"{self!r} was read for {self.stored.expansion.shape[0]} features, and there are "
                f"{n_features}; pass the norm with its parameters"
            )
        return self.stored

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """Return the norm itself; raise ValueError for another number of features.

        ``shape`` is ignored.
        """
        self.lift(n_features)
        return self


class LatentNorm(LiftedNorm):
    """Base of latent group norms: min { sum_B delta_B ||v_B||_2 : w = sum_B v_B, supp v_B in B }.

    The minimum is over one vector v_B for each group (set) B of features, with weight delta_B. The
    polar at z is max_B ||z restricted to B||_2 / delta_B. Subclasses define the groups. [V] section
    2.1; Jacob, Obozinski, Vert (2009).
    """

    weights: Any = None

    #: The norm depends only on |w|, because the entries of optimal v_B have the signs of w.
    absolute = True

    @abstractmethod
    def membership(self, n_features: int) -> Membership:
        """Return the groups, which cover each of ``n_features`` features.

        Groups numbered ``n_listed`` and above are the single features in no listed group.
        """

    def nested(self, sets: Membership, n_features: int) -> Nested | None:
        """Return the tree of the groups if any two are nested or disjoint, else None.

        ``sets`` are the groups (``membership``) over ``n_features`` features. By default None.
        """
        return None

    def lift(self, n_features: int) -> Lift:
        """Return L, with one copy of each feature per set that contains it, and the group norm.

        L has ``n_features`` rows. The copies belong to one set each, so that the sets no longer
        overlap.
        """
        sets = self.membership(n_features)
        nested = self.nested(sets, n_features)
        labels = sets.labels if nested is None else nested.labels
        norm = self._lifted_norm(Partition(labels, sets.n_sets, sets.n_sets), sets)
        expansion = Expansion.repeating(sets.members, n_features, nested)
        return Lift(expansion, norm, labels, sets.names)

    def _lifted_norm(self, partition: Partition, sets: Membership) -> Norm:
        """Return the norm over the lifted coordinates, in which the groups do not overlap.

        ``partition`` has the group of each lifted coordinate, and ``sets`` are the groups of
        features.
        """
        return Groups(partition, self._delta(sets))

    def _delta(self, sets: Membership) -> Array | None:
        """Return the weights delta_B > 0 of the groups ``sets``, (n_sets,), after checks."""
        class_name = type(self).__name__
        weights = self.weights
        if isinstance(weights, Mapping):
            if sets.names is None:
                raise TypeError(f"{class_name}: weights by name need groups with names, a mapping")
            # Put the weights into the order of the groups; each group needs one.
            absent = [name for name in sets.names if name not in weights]
            if absent:
                raise ValueError(
                    f"{class_name}: weights has no entry for group {absent[0]!r}; give every one"
                )
            weights = [weights[name] for name in sets.names]
        delta = set_weights(weights, sets.sizes, sets.n_listed, class_name)
        bad = np.flatnonzero(~(np.isfinite(delta) & (delta > 0)))
        if bad.size:
            raise ValueError(
                f"{class_name}: weights[{int(bad[0])}] is {delta[bad[0]]}, but weights of sets "
                "that may overlap must be positive and finite; drop a set that is to be left out, "
                "and name columns without a penalty in unpenalized="
            )
        return delta


class LatentGroups(LatentNorm):
    """Latent group lasso: min { sum_B delta_B ||v_B||_2 : w = sum_B v_B, supp v_B in B }.

    The minimum is over one vector v_B for each group B. The support of a solution is a *union* of
    groups, which may overlap in any way. The polar at z is max_B ||z restricted to B||_2 / delta_B;
    the atoms are the vectors of l2 norm 1 / delta_B supported on one group.

    Parameters
    ----------
    groups : list of index lists, mapping, boolean or sparse matrix, or data frame
        The sets. Lists contain column indices, column names, or patterns such as "gene_*" if X is a
        data frame. A mapping gives each set a name. A matrix has a row for each feature and a
        column for each set. A data frame has two columns (group, feature), as read from a .gmt file
        by ``datasets.read_gene_sets``. A feature in no set is a set by itself.
    weights : None, "sqrt_size", array-like or mapping
        delta_B > 0 for each listed set (by name in a mapping). None: all ones. "sqrt_size": the
        square root of the size of the set, which balances sets of different sizes.
    missing : {"error", "ignore"}
        Whether a column name that X does not have is an error or is ignored.

    Notes
    -----
    The proximal operator has no closed form. Problems are solved over duplicated columns, one copy
    of a feature for each set that contains it; only the copies in use are stored. Computing all
    scores costs one pass over X plus O(total size of the sets).

    References
    ----------
    Jacob, Obozinski, Vert (2009), Group lasso with overlap and graph lasso, ICML.
    Obozinski, Jacob, Vert (2011), arXiv:1110.0413. [V] section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve, norms
    >>> X, sets = np.eye(4), {"a": [0, 1], "b": [1, 2, 3]}
    >>> y = np.array([3.0, 4.0, 0.0, 0.0])
    >>> result = solve(X, y, norm=norms.LatentGroups(sets), alpha=0.25, fit_intercept=False)
    >>> [(part.name, part.columns.tolist()) for part in result.parts]
    [('a', [0, 1])]
    """

    def __init__(self, groups: Any, weights: Any = None, missing: str = "error") -> None:
        """Store the parameters, which the class documents."""
        self.groups = groups
        self.weights = weights
        self.missing = missing

    def membership(self, n_features: int) -> Membership:
        """Return the groups, which cover each of ``n_features`` features.

        Groups numbered ``n_listed`` and above are the single features in no listed group.
        """
        return Membership.of(self.groups, n_features, type(self).__name__)

    def with_names(self, names: Sequence[str]) -> Self:
        """Return the same norm with names and patterns of columns replaced by their indices.

        ``names`` are the names of the columns of X.
        """
        groups = resolved(self.groups, names, type(self).__name__, self.missing)
        if groups is self.groups:
            return self
        weights = self.weights
        if not isinstance(groups, dict):
            # Sets without any column in X are dropped, with their weights.
            nonempty = [number for number, group in enumerate(groups) if group]
            groups = [groups[number] for number in nonempty]
            if np.ndim(weights):
                weights = np.asarray(weights)[nonempty]
        return self.replaced(groups=groups, weights=weights)


class Chains(LatentNorm):
    """Latent group norm with all windows of ``length`` consecutive features as groups.

    The support of a solution is a union of runs of at least ``length`` consecutive features:
    peaks of a spectrum, segments of a genome, windows of a time series. [V] section 4.2

    Parameters
    ----------
    length : int >= 1
        Number of features in a window (chain), at most n_features (larger values are reduced).
    weights : None, "sqrt_size" or array-like
        Weights delta_B of the n_features - length + 1 windows. None: all ones.

    References
    ----------
    [V] sections 2.1 and 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> round(norms.Chains(length=2).value(np.array([3.0, 4.0, 0.0])), 6)
    5.0
    """

    def __init__(self, length: int, weights: Any = None) -> None:
        """Store the parameters, which the class documents."""
        self.length = length
        self.weights = weights

    def membership(self, n_features: int) -> Membership:
        """Return the windows of consecutive features, ordered by their first feature.

        There are ``n_features`` - length + 1 windows.
        """
        length = min(whole_number("Chains", "length", self.length), max(n_features, 1))
        n_chains = max(n_features - length + 1, 0)
        check_members(n_chains * length, "Chains")
        members = np.add.outer(np.arange(n_chains), np.arange(length)).ravel()
        return Membership(members, np.arange(n_chains + 1) * length, n_chains)


class LatentKSupport(LatentNorm):
    """Group k-support norm for overlapping groups: k-support norm of (||v_B||_2)_B, minimized.

    gauge(w) = min { k-support norm of the vector of group norms ||v_B||_2 : w = sum_B v_B, v_B
    zero outside the group B }. Each group has a copy of its features, as in [T] sections 2.3 and
    4.3, and an atom is a unit vector over the copies of k groups. The polar at z is the l2 norm of
    the k largest group norms ||z restricted to B||_2. k = 1 gives ``LatentGroups``; disjoint groups
    give ``KSupport(k, groups)``.

    Parameters
    ----------
    k : int >= 1
        Number of groups in an atom, at most the number of groups (larger values are reduced).
    groups : groups of LatentGroups, or a norm of sets
        The groups, in any form that ``LatentGroups`` accepts; a feature in no group is a group by
        itself. A norm such as ``Trees(...)``, ``Chains(8)`` or ``Hierarchy()`` provides its groups,
        without their weights.

    Notes
    -----
    With ``solvers.FeatureGeneration`` each iteration adds the k best groups as one block, and
    ``FeatureGenerator(groups=...)`` selects by this norm if groups overlap. A group never has a
    smaller score than a group that it contains, so that in a tree the largest groups come first.

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
        """Store the parameters, which the class documents."""
        self.k = k
        self.groups = groups

    @property
    def _latent(self) -> LatentNorm:
        """The latent group norm that defines the groups."""
        return self.groups if isinstance(self.groups, LatentNorm) else LatentGroups(self.groups)

    def membership(self, n_features: int) -> Membership:
        """Return the groups, which cover each of ``n_features`` features.

        Groups numbered ``n_listed`` and above are the single features in no listed group.
        """
        return self._latent.membership(n_features)

    def nested(self, sets: Membership, n_features: int) -> Nested | None:
        """Return the tree of the groups, or None, from the norm that defines the groups.

        ``sets`` are the groups over ``n_features`` features.
        """
        return self._latent.nested(sets, n_features)

    def with_names(self, names: Sequence[str]) -> LatentKSupport:
        """Return the same norm with names and patterns of columns replaced by their indices.

        ``names`` are the names of the columns of X.
        """
        latent = self._latent
        by_index = latent.with_names(names)
        return self if by_index is latent else LatentKSupport(self.k, by_index)

    def _lifted_norm(self, partition: Partition, sets: Membership) -> Norm:
        """Return the k-support norm over groups of lifted coordinates, given by ``partition``."""
        return KSupport(whole_number("LatentKSupport", "k", self.k), partition)
