"""BranchNorm: a k-support norm where some columns are in whatever comes, and some are out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn import _kernels
from atomlearn.core.interfaces import Array, Columns, Form, ProxJacobian, ProxPoint, Scores
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.norms.base import RatedNorm, lifted_point
from atomlearn.core.norms.ksupport import fair_share
from atomlearn.core.norms.ksupport_point import ksupport_point
from atomlearn.core.norms.vectors import power_of_two, to_float64

IN, OUT = 1, -1


class BranchNorm(RatedNorm):
    """sqrt(||w_in||_2^2 + gauge_k(w_free)^2), gauge_k the k-support norm; w_out has to be 0.

    Its atoms are the unit vectors over all that is in and at most k of what is free. Its square is
    the largest convex function below ||w||_2^2 of the vectors that are 0 where a branch says so
    and have at most k other entries: what a branch of a search for best subsets is relaxed to.

    Parameters
    ----------
    k : int >= 0
        Columns, or groups, that may join those that are in.
    fixed : (n,) int8
        Of each column, or group: 1 in, -1 out, 0 free.
    groups : None or Partition
        Disjoint groups of columns.

    References
    ----------
    Argyriou, Foygel, Srebro (2012), Sparse prediction with the k-support norm, NeurIPS 25,
    arXiv:1204.5043.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.subsets import BranchNorm
    >>> BranchNorm(1, np.array([1, 0, 0], dtype=np.int8)).value(np.array([4.0, 1.0, -2.0]))
    5.0
    """

    usual_form = "squared"

    def __init__(self, k: int, fixed: Any, groups: Any = None) -> None:
        self.k = k
        self.fixed = fixed
        self.groups = groups

    def value(self, w: Array) -> float:
        """The gauge; O(n) expected."""
        w = to_float64(w)
        sizes = w if self.groups is None else self.partition(w.size).norms(w)
        if np.any(sizes[self.fixed == OUT]):
            return math.inf
        inside, free = sizes[self.fixed == IN], sizes[self.fixed == 0]
        return math.hypot(float(np.linalg.norm(inside)), self._free_gauge(free))

    def _free_gauge(self, free: Array) -> float:
        if not np.any(free):
            return 0.0
        if self.k == 0:
            return math.inf
        scale = power_of_two(free)
        return scale * float(_kernels.ksupport_gauge(free / scale, min(self.k, free.size)))

    def ratings(self, scores: Scores) -> Scores:
        groups = self._groups(scores.n_columns)
        return scores if groups is None else ArrayScores(groups.norms_of_scores(scores))

    def squares(self, scores: Scores) -> Array:
        """Return the squared rating of each column, or group."""
        return np.square(self.ratings(scores).full())

    def polar(self, scores: Scores) -> float:
        """sqrt(sum of z_j^2 over what is in and the k largest of what is free)."""
        squares = self.squares(scores)
        free = squares[self.fixed == 0]
        if not self.k:
            free = free[:0]
        elif self.k < free.size:
            free = np.partition(free, free.size - self.k)[free.size - self.k :]
        return math.sqrt(float(squares[self.fixed == IN].sum()) + float(free.sum()))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """All that is in, and of what is free the largest, k at least."""
        squares = self.squares(scores)
        free = np.flatnonzero(self.fixed == 0)
        most = min(max(self.k, count), free.size)
        best = free[np.argpartition(-squares[free], most - 1)[:most]] if most else free
        chosen = np.concatenate([np.flatnonzero(self.fixed == IN), best])
        groups = self._groups(scores.n_columns)
        return chosen if groups is None else groups.members(chosen)

    def restrict(self, columns: Columns, n_features: int) -> BranchNorm:
        """The same over these columns, with what the groups have there."""
        if self.groups is None:
            return BranchNorm(self.k, self.fixed[columns])
        partition, kept = self.partition(n_features).restrict(columns)
        return BranchNorm(self.k, self.fixed[kept], partition)

    def bar(self, sizes: Array) -> float:
        """Return what the rating of a column beyond those in use must exceed to enter, over level.

        sizes : (n,) of all columns, or groups. 0 where at most k of what is free is in use.
        """
        free = sizes[self.fixed == 0]
        free = free[free > 0.0]
        return fair_share(free, self.k) if free.size > self.k > 0 else 0.0

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        if form != "squared":
            raise ValueError(f"BranchNorm is used in the squared form, got form={form!r}")
        if self.groups is None:
            return self._shrunk(v, amount)
        return lifted_point(v, self.partition(v.size), lambda sizes: self._shrunk(sizes, amount))

    def _shrunk(self, v: Array, amount: float) -> ProxPoint:
        """Return the proximal map of (amount / 2) gauge^2 over columns, or sizes of groups."""
        inside, free = self.fixed == IN, np.flatnonzero(self.fixed == 0)
        point = np.where(inside, v / (1.0 + amount), 0.0)
        gauge = float(np.linalg.norm(point))
        if not self.k or not free.size:
            diagonal = np.where(inside, 1.0 / (1.0 + amount), 0.0)
            return ProxPoint(point, gauge, lambda: ProxJacobian(diagonal))
        inner = ksupport_point(v[free], self.k, amount, "squared")
        point[free] = inner.point

        def jacobian() -> ProxJacobian:
            of_free = inner.jacobian()
            diagonal = np.where(inside, 1.0 / (1.0 + amount), 0.0)
            diagonal[free] = of_free.diagonal
            among = of_free.dense_factors()
            factors = np.zeros((v.size, among.shape[1]))
            factors[free] = among
            return ProxJacobian(diagonal, factors, of_free.coefficients)

        return ProxPoint(point, math.hypot(gauge, inner.gauge), jacobian)
