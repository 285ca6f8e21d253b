"""The k-support norm of a branch-and-bound node, with columns that are fixed in or out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn import _kernels
from atomlearn.core import (
    Array,
    Columns,
    Form,
    KSupport,
    Problem,
    ProxJacobian,
    ProxPoint,
    RatedNorm,
    Scores,
    fair_share,
    ksupport_point,
    lifted_point,
    power_of_two,
    to_float64,
)

IN = 1
OUT = -1


class Choices:
    """The units from which subsets of a problem are chosen: its columns, or groups of them.

    Attributes
    ----------
    norm : KSupport
        The norm of the problem.
    partition : Partition, optional
        The groups.
    count, n_free, largest : int
        Number of units, of unpenalized units among them, and of columns of the largest unit.
    """

    def __init__(self, problem: Problem) -> None:
        norm = problem.regularizer.norm
        n_features = problem.design.shape[1]
        assert isinstance(norm, KSupport)
        self.norm = norm
        self.partition = None
        self.count = n_features
        self.largest = 1
        if norm.groups is not None:
            self.partition = norm.partition(n_features)
            self.count = self.partition.n_groups
            self.largest = int(self.partition.sizes.max(initial=1))
        self.n_free = 0 if problem.free is None else np.unique(self.of(problem.free)).size

    def of(self, columns: Columns) -> Columns:
        """Return the unit of each column."""
        return columns if self.partition is None else self.partition.labels[columns]

    def columns(self, units: Columns) -> Columns:
        """Return the columns of units."""
        return units if self.partition is None else self.partition.members(units)


class BranchNorm(RatedNorm):
    """sqrt(||w_in||_2^2 + gauge_k(w_free)^2), gauge_k the k-support norm; w_out must be 0.

    Its atoms are the unit vectors over all columns that are in and at most k free ones. Its square
    is the largest convex function below ||w||_2^2 of the vectors that are 0 on the columns that are
    out and have at most k other nonzero free entries: the relaxation of a branch in a search for
    best subsets.

    With a ``price`` for each free column, level / 2 times its square is the largest convex function
    below level / 2 ||w||_2^2 + price * (number of entries of w_free), so that

        gauge_k(w)^2 = min sum_j (w_j^2 / d_j + (2 price / level) d_j)  over 0 <= d <= 1, sum d <= k

    and the square of the polar, over 2 level, is its conjugate: the price is subtracted from the k
    largest z_j^2 / (2 level). It is no norm then.

    Parameters
    ----------
    k : int >= 0
        Number of columns, or groups, that may be added to those that are in.
    fixed : (n,) int8
        For each column, or group: 1 in, -1 out, 0 free.
    groups : None or Partition
        Disjoint groups of columns.
    price, level : float >= 0, float > 0
        Price of a unit, and weight of the ridge.

    References
    ----------
    Argyriou, Foygel, Srebro (2012), Sparse prediction with the k-support norm, NeurIPS 25,
    arXiv:1204.5043.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.subsets.norm import BranchNorm
    >>> BranchNorm(1, np.array([1, 0, 0], dtype=np.int8)).value(np.array([4.0, 1.0, -2.0]))
    5.0
    """

    usual_form = "squared"

    def __init__(
        self, k: int, fixed: Any, groups: Any = None, price: float = 0.0, level: float = 1.0
    ) -> None:
        self.k = k
        self.fixed = fixed
        self.groups = groups
        self.price = price
        self.level = level

    @property
    def least(self) -> float:
        """The |w_j| from which on the relaxation charges the full price: sqrt(2 price / level)."""
        return math.sqrt(2.0 * self.price / self.level)

    @property
    def toll(self) -> float:
        """The price in units of squared scores, 2 price level, which is subtracted from them."""
        return 2.0 * self.price * self.level

    def value(self, w: Array) -> float:
        """Return the gauge, in O(n) expected operations."""
        w = to_float64(w)
        sizes = w if self.groups is None else self.partition(w.size).norms(w)
        if np.any(sizes[self.fixed == OUT]):
            return math.inf
        fixed_sizes = sizes[self.fixed == IN]
        free = sizes[self.fixed == 0]
        return math.hypot(float(np.linalg.norm(fixed_sizes)), self._free_gauge(free))

    def _free_gauge(self, free: Array) -> float:
        """Return gauge_k of the weights, or group sizes, of the free units."""
        if not np.any(free):
            return 0.0
        if self.k == 0:
            return math.inf
        scale = power_of_two(free)
        least = self.least
        plain = scale * float(_kernels.ksupport_gauge(free / scale, min(self.k, free.size)))
        if not least:
            return plain
        shares = np.minimum(np.abs(free) / least, 1.0)
        if shares.sum() >= self.k:
            return math.hypot(plain, least * math.sqrt(self.k))
        gauges = np.where(shares < 1.0, 2.0 * least * np.abs(free), free**2 + least**2)
        return math.sqrt(float(gauges.sum()))

    def squares(self, scores: Scores) -> Array:
        """Return the squared rating of each column, or group."""
        return np.square(self.ratings(scores).full())

    def polar(self, scores: Scores) -> float:
        """Return sqrt(sum of z_j^2) over the columns fixed in, and the k largest free z_j^2."""
        return math.sqrt(self.counted(self.squares(scores)))

    def counted(self, squares: Array) -> float:
        """Return the squared polar for squared ratings (n_units,).

        It is the sum over the units fixed in, plus the k largest of max(square - toll, 0) over the
        free units.
        """
        free = np.maximum(_largest(squares[self.fixed == 0], self.k) - self.toll, 0.0)
        return float(squares[self.fixed == IN].sum()) + float(free.sum())

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the columns of all units fixed in, and of the max(k, count) best free units."""
        squares = self.squares(scores)
        free = np.flatnonzero(self.fixed == 0)
        n_listed = min(max(self.k, count), free.size)
        best = free[np.argpartition(-squares[free], n_listed - 1)[:n_listed]] if n_listed else free
        chosen = np.concatenate([np.flatnonzero(self.fixed == IN), best])
        groups = self._groups(scores.n_columns)
        return chosen if groups is None else groups.members(chosen)

    def restrict(self, columns: Columns, n_features: int) -> BranchNorm:
        """Return the norm for vectors on these columns only; groups are cut to these columns."""
        if self.groups is None:
            return self.replaced(fixed=self.fixed[columns])
        partition, kept = self.partition(n_features).restrict(columns)
        return self.replaced(fixed=self.fixed[kept], groups=partition)

    def bar(self, sizes: Array) -> float:
        """Return the entry threshold: a free unit enters if rating / level exceeds it.

        ``sizes`` (n_units,) are the |w_j| of columns, or the norms of groups. Units of at least
        this size have the share d_j = 1. The threshold is 0 if at most k free units are nonzero
        and there is no price.
        """
        free = sizes[self.fixed == 0]
        free = free[free > 0.0]
        return max(fair_share(free, self.k) if free.size > self.k > 0 else 0.0, self.least)

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at v."""
        if form != "squared":
            raise ValueError(f"BranchNorm is used in the squared form, got form={form!r}")
        if self.groups is None:
            return self._shrunk(v, amount)
        return lifted_point(v, self.partition(v.size), lambda sizes: self._shrunk(sizes, amount))

    def _shrunk(self, v: Array, amount: float) -> ProxPoint:
        """Return the proximal map of (amount / 2) gauge^2 over columns, or over sizes of groups."""
        is_fixed = self.fixed == IN
        free = np.flatnonzero(self.fixed == 0)
        point = np.where(is_fixed, v / (1.0 + amount), 0.0)
        gauge = float(np.linalg.norm(point))
        if not self.k or not free.size:
            diagonal = np.where(is_fixed, 1.0 / (1.0 + amount), 0.0)
            return ProxPoint(point, gauge, lambda: ProxJacobian(diagonal))
        inner = self._prox_of_free_units(v[free], amount)
        point[free] = inner.point

        def jacobian() -> ProxJacobian:
            of_free = inner.jacobian()
            diagonal = np.where(is_fixed, 1.0 / (1.0 + amount), 0.0)
            diagonal[free] = of_free.diagonal
            factors_of_free = of_free.dense_factors()
            factors = np.zeros((v.size, factors_of_free.shape[1]))
            factors[free] = factors_of_free
            return ProxJacobian(diagonal, factors, of_free.coefficients)

        return ProxPoint(point, math.hypot(gauge, inner.gauge), jacobian)

    def _prox_of_free_units(self, v: Array, amount: float) -> ProxPoint:
        """Return the proximal map of (amount / 2) gauge_k^2 for the free units."""
        least = self.least
        sizes = np.abs(v)
        bought = sizes >= least * (1.0 + amount)
        is_shrunk = ~bought & (sizes > least * amount)
        point = np.where(is_shrunk, v - np.sign(v) * least * amount, 0.0)
        point[bought] = v[bought] / (1.0 + amount)
        shares = np.count_nonzero(bought) + float(np.abs(point[is_shrunk]).sum()) / max(
            least, 1e-300
        )
        if least and shares < self.k:
            diagonal = np.where(bought, 1.0 / (1.0 + amount), is_shrunk.astype(np.float64))
            return ProxPoint(point, self._free_gauge(point), lambda: ProxJacobian(diagonal))
        inner = ksupport_point(v, self.k, amount, "squared")
        return replace(inner, gauge=math.hypot(inner.gauge, least * math.sqrt(self.k)))


def _largest(values: Array, count: int) -> Array:
    """Return the ``count`` largest values, or all of them, in any order."""
    if not 0 < count < values.size:
        return values if count else values[:0]
    return np.partition(values, values.size - count)[values.size - count :]
