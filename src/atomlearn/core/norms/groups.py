"""Groups: the group lasso norm sum_g weight_g ||w_g||_2 over disjoint groups; and L2, of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn._support import to_float64
from atomlearn.core.interfaces import Array, Columns, Form, GroupWeights, Norm, ProxPoint, Scores
from atomlearn.core.norms.base import RatedNorm, lifted_point
from atomlearn.core.norms.forms import l1_point
from atomlearn.core.norms.l1 import L1
from atomlearn.core.norms.partition import Partition, set_weights


class Groups(RatedNorm):
    """gauge(w) = sum_g weight_g ||w_g||_2 over disjoint groups: the group lasso norm.

    Its polar (dual) norm is max_g ||z_g||_2 / weight_g. Its squared form,
    (level / 2) (sum_g ||w_g||)^2, is the subproblem of feature generation, and the proximal map of
    that form is the Moreau projection of Tan, Tsang, Wang (2014), Algorithm 3.

    Parameters
    ----------
    groups : list of index lists, or label array
        Disjoint groups of columns; a column in no list, or with a negative label, is a singleton
        group. Lists may contain column names or patterns ("dose_*") if the columns of X have names.
    weights : None, "sqrt_size" or array-like
        One weight for each listed group, in the order of the lists, or in the sorted order of the
        labels. As in ``L1``, 0 leaves a group unpenalized and inf leaves it out. None: all ones.
        "sqrt_size": the square root of the number of columns, so that large groups are not cheaper
        per column. Columns in no group have weight 1.

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
        """Store the parameters of the class; ``on`` checks them for a data set."""
        self.groups = groups
        self.weights = weights

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Groups:
        """Return the same norm with its groups and weights checked and resolved for n_features.

        ``shape`` is used only by norms of matrices.
        """
        partition, weights = self.parts(n_features)
        listed = partition.all_listed()
        return self if listed is self.groups else Groups(listed, weights)

    def as_groups(self, n_features: int, nonnegative: bool = False) -> GroupWeights | None:
        """Return the groups and weights of the norm; None if some weight is 0 or infinite.

        With ``nonnegative``, groups are requested for a norm that is infinite unless w >= 0. The
        result is then None, as this norm is finite for all w. n_features : the number of all
        columns.
        """
        partition, weights = self.parts(n_features)
        if nonnegative or not _priced(weights):
            return None
        return GroupWeights(partition.labels, weights)

    def value(self, w: Array) -> float:
        """Return sum_g weight_g ||w_g||_2 over the groups of w (n_features,)."""
        w = to_float64(w)
        partition, weights = self.parts(w.size)
        norms = partition.norms(w)
        # Groups of norm 0 are left out, as their weight may be infinite.
        is_positive = norms > 0
        return float(weights[is_positive] @ norms[is_positive])

    def _groups(self, n_features: int) -> Partition:
        """Return the groups of the ``n_features`` features, which are rated."""
        return self.partition(n_features)

    def ratings(self, scores: Scores) -> Scores:
        """Return the rating ||z_g||_2 / weight_g of each group, from the scores z.

        Groups of weight inf have the rating 0.
        """
        partition, weights = self.parts(scores.n_columns)
        if _priced(weights):
            return partition.ratings_of_scores(scores, weights)
        # The weighted l1 norm of the group norms has the same ratings, also for weights 0 and inf.
        return L1(weights).ratings(partition.ratings_of_scores(scores))

    def without(self, columns: Columns, n_features: int) -> tuple[Columns, Groups]:
        """Return all unpenalized columns, and this norm with the groups of weight 0 excluded.

        The unpenalized columns are ``columns`` and the columns of groups of weight 0. Their
        coefficients are fitted as a part of the loss, so that their entries of w are fixed at 0, by
        a weight of inf. n_features : the number of all columns.
        """
        partition, weights = self.parts(n_features)
        free = np.flatnonzero(weights == 0)
        if not free.size:
            return columns, self
        fixed = Groups(partition.all_listed(), np.where(weights == 0, np.inf, weights))
        return np.union1d(columns, partition.members(free)), fixed

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at v (n,): the weighted l1 map of the group norms.

        The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus
        (amount / 2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on
        gauge(x) <= amount. The gauge is this norm.
        """
        partition, weights = self.parts(v.size)

        def point(norms: Array) -> ProxPoint:
            """Return the proximal map of the weighted l1 norm at the group norms (n_groups,)."""
            if _priced(weights):
                return l1_point(norms, weights, amount, form)
            return L1(weights).prox_point(norms, amount, form)

        return lifted_point(v, partition, point)

    def restrict(self, columns: Columns, n_features: int) -> Groups:
        """Return the same norm over ``columns``, with the weights of the groups they are in.

        n_features : the number of all columns.
        """
        partition, weights = self.parts(n_features)
        restricted, kept_groups = partition.restrict(columns)
        return Groups(restricted, weights[kept_groups])

    def parts(self, n_features: int) -> tuple[Partition, Array]:
        """Return the groups of n_features features, and one weight for each group."""
        partition = self.partition(n_features)
        # If ``self.groups`` is a partition that lists all groups, ``on`` has already checked it and
        # the weights.
        if partition is self.groups and partition.n_listed == partition.n_groups:
            weights = self.weights
            return partition, np.ones(partition.n_groups) if weights is None else weights
        return partition, set_weights(self.weights, partition.sizes, partition.n_listed, "Groups")


def _priced(weights: Array) -> bool:
    """Return whether all weights are positive and finite, so that each group is penalized."""
    return bool(((weights > 0) & np.isfinite(weights)).all())


def l1_weights(norm: Norm, n_features: int, nonnegative: bool = False) -> Array | None:
    """Return p with gauge(w) = sum_j p_j |w_j|, 0 < p_j < inf, (n_features,); None for other norms.

    With ``nonnegative``, return p for a norm with gauge(w) = p'w for w >= 0 and infinite elsewhere.
    Such a norm is used if the columns are images X a of atoms a, with coefficients >= 0.
    """
    # A weighted l1 norm is a group norm with one group for each column.
    groups = norm.as_groups(n_features, nonnegative)
    if groups is None or groups.weights.size != n_features:
        return None
    return groups.weights[groups.labels]


class L2(Groups):
    """gauge(w) = ||w||_2, which is its own polar (dual) norm; one group of all columns.

    Its best atom is z / ||z||_2, so ``best_columns`` returns all columns for any count. It
    therefore needs designs whose scores can all be stored.

    References
    ----------
    A. E. Hoerl, R. W. Kennard 1970, Ridge regression.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.L2().value(np.array([3.0, 0.0, -4.0]))
    5.0
    """

    def __init__(self) -> None:
        """Leave the groups open: ``partition`` makes one group of all columns."""
        super().__init__(groups=None)

    def partition(self, n_features: int) -> Partition:
        """Return one group of all ``n_features`` columns."""
        n_groups = min(n_features, 1)
        return Partition(np.zeros(n_features, dtype=np.int64), n_groups, n_groups)
