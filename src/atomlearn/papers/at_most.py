"""AtMost: the k-support norm of atoms that hold at most so many columns of each group."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Columns, Form, ProxPoint, Scores, whole_number
from atomlearn.core.norms.grouped import GroupedNorm
from atomlearn.core.norms.vectors import l2_norm, power_of_two, to_float64
from atomlearn.papers.at_most_point import Caps, at_most_point


class AtMost(GroupedNorm):
    """gauge(w)^2 = min sum_j w_j^2 / d_j over 0 <= d <= 1, sum d <= k, sum_(j in g) d_j <= most_g.

    The unit ball is the convex hull of the vectors with ||w||_2 <= 1 that have at most k entries,
    and at most ``most`` of each group: one gene of a block in linkage, two words of a family, three
    sensors of a site. Its polar is the l2 norm of the k largest |z_j| within these limits, taken
    greedily. As with the k-support norm, of which this is one (``most`` >= k), an optimum is a
    combination of such atoms and may have more columns; the limits bind what pays, not a count.

    Parameters
    ----------
    k : int
        Columns of an atom.
    groups : list of index lists, or label array
        Disjoint groups, as of ``Groups``. A column in no group has no limit but k.
    most : int or sequence of int, default=1
        Columns of an atom in each listed group, >= 1.

    Notes
    -----
    All three proximal maps are w_j = v_j d_j / (d_j + mu), d_j = clip(t_g |v_j| - mu, 0, 1): each
    group has the t that fills its own limit, or the common one of k where that is smaller.

    References
    ----------
    A. Argyriou, R. Foygel, N. Srebro 2012, arXiv:1204.5043 (without groups).
    C. Micchelli, J. Morales, M. Pontil 2013, Regularizers for structured sparsity, Advances in
    Computational Mathematics 38, 455-489 (norms by sets of scalings d).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norm = norms.AtMost(2, groups=[[0, 1]], most=1)
    >>> norm.value(np.array([3.0, 4.0, 0.0])), norm.value(np.array([3.0, 0.0, 4.0]))
    (7.0, 5.0)
    """

    usual_form = "squared"

    def __init__(self, k: int, groups: Any, most: Any = 1) -> None:
        self.k = k
        self.groups = groups
        self.most = most

    def check(self, n_features: int) -> None:
        """Raise where k or a limit is no whole number >= 1, or the groups do not fit."""
        self.caps(n_features)

    def on(self, n_features: int) -> AtMost:
        """The same norm with its groups read."""
        caps = self.caps(n_features)
        return AtMost(self.k, caps.partition.all_listed(), caps.most)

    def value(self, w: Array) -> float:
        """sqrt(min_d sum_j w_j^2 / d_j)"""
        w = to_float64(w)
        scale = power_of_two(w)
        return scale * self.caps(w.size).gauge(np.abs(w) / scale)

    def polar(self, scores: Scores) -> float:
        """l2 norm of the k largest |z_j| within the limits."""
        z = scores.full()
        return l2_norm(z[self.caps(z.size).greedy(np.abs(z))])

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """The columns of the best atom, then those of largest |z_j|, ``count`` in all."""
        size = np.abs(scores.full())
        atom = self.caps(size.size).greedy(size)
        if count <= atom.size:
            return atom
        others = scores.top(min(count, size.size))[0]
        return np.concatenate([atom, others[~np.isin(others, atom)]])[:count]

    def restrict(self, columns: Columns, n_features: int) -> AtMost:
        """The same norm over these columns, with the limits of the groups they touch."""
        caps = self.caps(n_features)
        partition, kept = caps.partition.restrict(columns)
        return AtMost(self.k, partition, caps.most[kept])

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        return at_most_point(v, self.caps(v.size), amount, form)

    def caps(self, n_features: int) -> Caps:
        """Return the limits, one a group; a column in no group is one of its own."""
        k, partition = whole_number("AtMost", "k", self.k), self.partition(n_features)
        most = np.asarray(self.most)
        whole = most.dtype.kind in "iu" and (most >= 1).all()
        if not whole or most.shape not in ((), (partition.n_listed,)):
            raise ValueError(
                f"AtMost: most must be a whole number >= 1, or one for each of the "
                f"{partition.n_listed} groups; got {self.most!r}"
            )
        limits = np.ones(partition.n_groups, dtype=np.int64)
        limits[: partition.n_listed] = most
        return Caps(min(k, max(1, n_features)), partition, limits)
