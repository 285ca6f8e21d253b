"""LatentGroups: sets of features that may overlap; w is a sum of vectors on one set each."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

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
    membership_of,
    needs_names,
    resolved,
    set_weights,
    to_float64,
    whole_number,
)
from atomlearn.lifting.value import lifted_value


class LiftedNorm(Parameters, Norm):
    """A norm that is the image of a simpler one over more coordinates: gauge(w) = inf inner(u).

    Subclasses implement ``lift``; polar, best columns and best atoms are those of the lifted norm.
    """

    @abstractmethod
    def lift(self, n_features: int) -> Lift:
        """Check the parameters, and return the expansion and the norm over it."""

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """Return the same norm with its lift computed; raise if a parameter is invalid."""
        return Image(self, self.lift(n_features))

    def polar(self, scores: Scores) -> float:
        """Return the polar of the lifted norm at L'z."""
        lift = self.lift(scores.n_columns)
        return lift.norm.polar(lift.expansion.scores(scores))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the features of the best atoms, best first, each once."""
        lift = self.lift(scores.n_columns)
        lifted = lift.norm.best_columns(lift.expansion.scores(scores), count)
        at = lift.expansion.touched(lifted)
        _, first = np.unique(at.rows, return_index=True)
        return at.features[at.rows[np.sort(first)]]

    def best_atom(self, scores: Scores) -> Atom:
        """Return L u for the best atom u of the lifted norm."""
        lift = self.lift(scores.n_columns)
        atom = lift.norm.best_atom(lift.expansion.scores(scores))
        return Atom(*lift.expansion.apply(atom.columns, atom.values))

    def value(self, w: Array) -> float:
        """Return inf inner(u) over L u = w, by a small problem solved to 1e-8 or better."""
        w = to_float64(w)
        return lifted_value(self.lift(w.size), w)


class Image(LiftedNorm):
    """A lifted norm for a given number of features, with its lift.

    Parameters
    ----------
    norm : Norm
        The norm with its parameters.
    made : Lift
        Its lift.
    """

    def __init__(self, norm: Norm, made: Lift) -> None:
        self.norm = copy.copy(norm)
        self.made = made

    @property
    def absolute(self) -> bool:  # type: ignore[override]
        """The value of the norm with parameters."""
        return self.norm.absolute

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the norm with its parameters, and the number of features."""
        return {"norm": self.norm, "n_features": self.made.expansion.shape[0]}

    def __repr__(self) -> str:
        return repr(self.norm)

    def lift(self, n_features: int) -> Lift:
        """Return the lift, for the same number of features."""
        if n_features != self.made.expansion.shape[0]:
            raise ValueError(
                f"{self!r} was read for {self.made.expansion.shape[0]} features, and there are "
                f"{n_features}; pass the norm with its parameters"
            )
        return self.made

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """Return the norm itself."""
        self.lift(n_features)
        return self


class LatentNorm(LiftedNorm):
    """gauge(w) = min { sum_B delta_B ||z_B||_2 : w = sum_B z_B, z_B zero outside the set B }.

    [V] section 2.1; Jacob, Obozinski, Vert (2009). The polar is max_B ||z_B||_2 / delta_B.
    Subclasses define the sets.
    """

    weights: Any = None

    #: The best parts of w have the signs of w.
    absolute = True

    @abstractmethod
    def membership(self, n_features: int) -> Membership:
        """Return the sets, each feature in one; sets beyond ``n_listed`` are single features."""

    def nested(self, sets: Membership, n_features: int) -> Nested | None:
        """Return the nesting of the sets; None if they overlap otherwise."""
        return None

    def lift(self, n_features: int) -> Lift:
        """Return L, which repeats each feature for every set, and the norm over the sets."""
        sets = self.membership(n_features)
        nested = self.nested(sets, n_features)
        labels = sets.labels if nested is None else nested.labels
        norm = self._over(Partition(labels, sets.n_sets, sets.n_sets), sets)
        expansion = Expansion.repeating(sets.members, n_features, nested)
        return Lift(expansion, norm, labels, sets.names)

    def _over(self, partition: Partition, sets: Membership) -> Norm:
        """Return the norm of the parts, which do not overlap."""
        return Groups(partition, self._delta(sets))

    def _delta(self, sets: Membership) -> Array | None:
        """Return the weight of every set; None: all ones."""
        owner = type(self).__name__
        weights = self.weights
        if isinstance(weights, Mapping):
            if sets.names is None:
                raise TypeError(f"{owner}: weights by name need groups with names, a mapping")
            absent = [name for name in sets.names if name not in weights]
            if absent:
                raise ValueError(
                    f"{owner}: weights has no entry for group {absent[0]!r}; give every one"
                )
            weights = [weights[name] for name in sets.names]
        found = set_weights(weights, sets.sizes, sets.n_listed, owner)
        bad = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
        if bad.size:
            raise ValueError(
                f"{owner}: weights[{int(bad[0])}] is {found[bad[0]]}, but weights of sets that may "
                "overlap must be positive and finite; drop a set that is to be left out, and name "
                "columns without a penalty in unpenalized="
            )
        return found


class LatentGroups(LatentNorm):
    """gauge(w) = min { sum_B delta_B ||z_B||_2 : w = sum_B z_B, z_B zero outside the set B }.

    The support of a solution is a *union* of sets, which may overlap in any way. The polar is max_B
    ||z_B||_2 / delta_B, the atoms are the vectors of norm 1 / delta_B on one set.

    Parameters
    ----------
    groups : list of index lists, mapping, boolean or sparse matrix, or data frame
        The sets. Lists contain column indices, column names, or patterns such as "gene_*" if X is a
        data frame; a mapping gives each set a name; a matrix has a row for each feature and a
        column for each set; a data frame has two columns (group, feature), as read from a .gmt file
        by ``datasets.read_gene_sets``. A feature in no set is a set by itself.
    weights : None, "sqrt_size", array-like or mapping
        delta_B > 0 for each listed set (by name in a mapping). None: all ones, "sqrt_size": the
        square root of the size, which balances sets of different sizes.
    missing : {"error", "ignore"}
        Treatment of names that X does not have.

    Notes
    -----
    There is no closed proximal map; problems are solved over the lifted columns, one for each
    membership, which are never stored for all sets together. A pass costs one pass over X plus
    O(total size of the sets).

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
        self.groups = groups
        self.weights = weights
        self.missing = missing

    def membership(self, n_features: int) -> Membership:
        """Return the sets, each feature in one; sets beyond ``n_listed`` are single features."""
        return membership_of(self.groups, n_features, type(self).__name__)

    def with_names(self, names: Sequence[str]) -> Self:
        """Return the same norm with names and patterns of columns replaced by their indices."""
        if not needs_names(self.groups):
            return self
        groups = resolved(self.groups, names, type(self).__name__, self.missing)
        weights = self.weights
        if not isinstance(groups, dict):
            # Weights of sets that are now empty are dropped.
            kept = [number for number, group in enumerate(groups) if group]
            groups = [groups[number] for number in kept]
            if np.ndim(weights):
                weights = np.asarray(weights)[kept]
        return self.replaced(groups=groups, weights=weights)


class Chains(LatentNorm):
    """Latent groups of ``length`` neighboring features: {1..k}, {2..k+1}, ... ([V] section 4.2).

    The support of a solution is a union of runs of at least ``length`` features: peaks of a
    spectrum, segments of a genome, windows of a time series.

    Parameters
    ----------
    length : int >= 1
        Features of a chain; a larger number than that of features means all of them.
    weights : None, "sqrt_size" or array-like
        delta of each of the n_features - length + 1 chains. None: all ones.

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
        self.length = length
        self.weights = weights

    def membership(self, n_features: int) -> Membership:
        """Return the chains, ordered by their first feature."""
        length = min(whole_number("Chains", "length", self.length), max(n_features, 1))
        n_chains = max(n_features - length + 1, 0)
        check_members(n_chains * length, "Chains")
        members = np.add.outer(np.arange(n_chains), np.arange(length)).ravel()
        return Membership(members, np.arange(n_chains + 1) * length, n_chains)


class LatentKSupport(LatentNorm):
    """gauge(w) = min { k-support norm of (||z_B||_2)_B : w = sum_B z_B, z_B zero outside B }.

    This is the k-support norm over groups whose features may overlap: each set has a copy of its
    features, as in [T] sections 2.3 and 4.3, and an atom is a unit vector over the copies of k
    sets. The polar is the l2 norm of the k largest ||z_B||_2. With k = 1 it is ``LatentGroups``,
    with disjoint sets ``KSupport(k, groups)``.

    Parameters
    ----------
    k : int >= 1
        Sets of an atom. A larger number than that of sets means all of them.
    groups : groups of LatentGroups, or a norm of sets
        The sets; a feature in none is a set by itself. A norm such as ``Trees(...)``, ``Chains(8)``
        or ``Hierarchy()`` gives its sets, without their weights.

    Notes
    -----
    With ``solvers.FeatureGeneration`` a pass takes the k best sets as one block, and
    ``FeatureGenerator(groups=...)`` selects by this norm if groups overlap. A set that contains
    another never has the smaller score, so that in a tree the largest sets come first.

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
        """The norm that defines the sets."""
        return self.groups if isinstance(self.groups, LatentNorm) else LatentGroups(self.groups)

    def membership(self, n_features: int) -> Membership:
        """Return the sets, each feature in one; sets beyond ``n_listed`` are single features."""
        return self._latent.membership(n_features)

    def nested(self, sets: Membership, n_features: int) -> Nested | None:
        """Return the nesting of the norm that defines the sets."""
        return self._latent.nested(sets, n_features)

    def with_names(self, names: Sequence[str]) -> LatentKSupport:
        """Return the same norm with names and patterns of columns replaced by their indices."""
        latent = self._latent
        known = latent.with_names(names)
        return self if known is latent else LatentKSupport(self.k, known)

    def _over(self, partition: Partition, sets: Membership) -> Norm:
        return KSupport(whole_number("LatentKSupport", "k", self.k), partition)
