"""The k-support norm of a branch-and-bound node, with columns that are fixed in or out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from atomlearn import _kernels
from atomlearn._support import power_of_two, to_float64
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
)

IN = 1
OUT = -1


class Choices:
    """The units from which subsets of a problem are chosen: its columns, or groups of columns.

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
        """Count the units: columns, or groups if the k-support norm of the problem has groups."""
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
        """Return the number of the unit of each column, (m,) for m columns."""
        return columns if self.partition is None else self.partition.labels[columns]

    def columns(self, units: Columns) -> Columns:
        """Return the numbers of all columns of these units."""
        return units if self.partition is None else self.partition.members(units)


class BranchNorm(RatedNorm):
    """sqrt(||w_in||_2^2 + gauge_k(w_free)^2), gauge_k the k-support norm; w_out must be 0.

    The entries w_in, w_out and w_free are those of the columns that a branch of the search fixes
    in, fixes out, and leaves free. The atoms (the extreme points of the unit ball) are vectors of
    length 1 over the columns that are in and at most k free columns. Consider ||w||_2^2 over the
    vectors with w_out = 0 and at most k nonzero entries in w_free. The square of this norm is the
    largest convex function below it: the relaxation of the branch.

    With a ``price`` a ridge term is relaxed together with an l0 penalty: each free column of a
    subset adds the price to the objective. Consider

        level / 2 ||w||_2^2 + price * (number of nonzero entries of w_free)

    over the same vectors. level / 2 times the squared gauge is the largest convex function below
    it. The square of gauge_k is then

        min over d of  sum_j (w_j^2 / d_j + (2 price / level) d_j),  0 <= d <= 1,  sum d <= k

    Here d_j is the share of the free column j: how much of it is in the subset. The conjugate of
    level / 2 times the squared gauge is the squared polar over 2 level. In it, the price is
    subtracted from each of the k largest z_j^2 / (2 level); negative results count as 0. With a
    price this is no norm.

    Parameters
    ----------
    k : int >= 0
        Number of columns, or groups, that may be added to those that are in.
    fixed : (n,) int8
        For each column, or group: 1 in, -1 out, 0 free.
    groups : None or Partition
        Disjoint groups of columns.
    price : float >= 0
        What each free unit (column, or group) of a subset adds to the objective.
    level : float > 0
        Weight of the ridge.

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
        """The |w_j| from which on the relaxation has the full price: sqrt(2 price / level)."""
        return math.sqrt(2.0 * self.price / self.level)

    @property
    def price_square(self) -> float:
        """The price in units of squared scores, 2 price level, which is subtracted from them."""
        return 2.0 * self.price * self.level

    def value(self, w: Array) -> float:
        """Return the gauge of the weights w (n,), inf if a unit fixed out has a weight.

        It takes O(n) expected operations.
        """
        w = to_float64(w)
        unit_norms = w if self.groups is None else self.partition(w.size).norms(w)
        if np.any(unit_norms[self.fixed == OUT]):
            return math.inf
        fixed_in = unit_norms[self.fixed == IN]
        free = unit_norms[self.fixed == 0]
        return math.hypot(float(np.linalg.norm(fixed_in)), self._free_gauge(free))

    def _free_gauge(self, free: Array) -> float:
        """Return gauge_k of ``free``, the weights of the free units (or the norms of groups)."""
        if not np.any(free):
            return 0.0
        if self.k == 0:
            return math.inf
        # The division by a power of two is exact and prevents overflow of squares.
        scale = power_of_two(free)
        least = self.least
        plain = scale * float(_kernels.ksupport_gauge(free / scale, min(self.k, free.size)))
        if not least:
            return plain
        # The shares d_j are |w_j| / least, at most 1, if their sum is at most k. Otherwise sum d =
        # k, so the prices are constant, and the k-support norm decides on the shares.
        shares = np.minimum(np.abs(free) / least, 1.0)
        if shares.sum() >= self.k:
            return math.hypot(plain, least * math.sqrt(self.k))
        # The terms w_j^2 / d_j + least^2 d_j of the squared gauge.
        terms = np.where(shares < 1.0, 2.0 * least * np.abs(free), free**2 + least**2)
        return math.sqrt(float(terms.sum()))

    def squares(self, scores: Scores) -> Array:
        """Return the squared rating of each column (its score), or group (norm of its scores)."""
        return np.square(self.ratings(scores).full())

    def polar(self, scores: Scores) -> float:
        """Return the polar (dual norm) of the scores z, the root of ``squared_polar``."""
        return math.sqrt(self.squared_polar(self.squares(scores)))

    def squared_polar(self, squares: Array) -> float:
        """Return the squared polar for squared ratings (n_units,).

        It is the sum of the squares over the units fixed in, plus the k largest values of
        max(square - price_square, 0) over the free units.
        """
        free = np.maximum(_largest(squares[self.fixed == 0], self.k) - self.price_square, 0.0)
        return float(squares[self.fixed == IN].sum()) + float(free.sum())

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the columns of all units fixed in, and of the max(k, count) best free units.

        The best units have the largest squared ratings for ``scores``.
        """
        squares = self.squares(scores)
        free = np.flatnonzero(self.fixed == 0)
        n_listed = min(max(self.k, count), free.size)
        best = free[np.argpartition(-squares[free], n_listed - 1)[:n_listed]] if n_listed else free
        chosen = np.concatenate([np.flatnonzero(self.fixed == IN), best])
        groups = self._groups(scores.n_columns)
        return chosen if groups is None else groups.members(chosen)

    def restrict(self, columns: Columns, n_features: int) -> BranchNorm:
        """Return the norm for vectors on ``columns`` only; groups keep only these columns.

        ``n_features`` is the number of columns of the problem.
        """
        if self.groups is None:
            return self.replaced(fixed=self.fixed[columns])
        partition, kept_units = self.partition(n_features).restrict(columns)
        return self.replaced(fixed=self.fixed[kept_units], groups=partition)

    def entry_threshold(self, unit_norms: Array) -> float:
        """Return the t such that a free unit of weight 0 becomes nonzero if rating / level > t.

        ``unit_norms`` (n_units,) are the |w_j| of columns, or the norms of the weights of groups,
        at the current point. A unit with a norm of at least t has the share d_j = 1. t is 0 if at
        most k free units are nonzero and there is no price.
        """
        free = unit_norms[self.fixed == 0]
        free = free[free > 0.0]
        # ``fair_share`` is the t with sum_j min(|w_j| / t, 1) = k: the shares d_j add up to k.
        return max(fair_share(free, self.k) if free.size > self.k > 0 else 0.0, self.least)

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of (amount / 2) gauge^2 at v (n,); ``form`` must be "squared".

        With groups, the map is applied to the norms of the groups. Each group is then multiplied by
        the factor by which its norm has changed.
        """
        if form != "squared":
            raise ValueError(f"BranchNorm is used in the squared form, got form={form!r}")
        if self.groups is None:
            return self._shrunk(v, amount)
        return lifted_point(v, self.partition(v.size), lambda norms: self._shrunk(norms, amount))

    def _shrunk(self, v: Array, amount: float) -> ProxPoint:
        """Return the proximal map of (amount / 2) gauge^2 at v, with one entry for each unit.

        Units fixed in are divided by 1 + amount, and units fixed out become 0. The map of the free
        units is ``_prox_of_free_units``.
        """
        is_fixed = self.fixed == IN
        free = np.flatnonzero(self.fixed == 0)
        point = np.where(is_fixed, v / (1.0 + amount), 0.0)
        gauge = float(np.linalg.norm(point))
        # Without free units the Jacobian is diagonal.
        if not self.k or not free.size:
            diagonal = np.where(is_fixed, 1.0 / (1.0 + amount), 0.0)
            return ProxPoint(point, gauge, lambda: ProxJacobian(diagonal))
        # The squared gauge is a sum over units fixed in and free units, so the maps are separate.
        inner = self._prox_of_free_units(v[free], amount)
        point[free] = inner.point

        def jacobian() -> ProxJacobian:
            """Return the Jacobian at v: that of the free units, in the entries of all units."""
            jacobian_of_free = inner.jacobian()
            diagonal = np.where(is_fixed, 1.0 / (1.0 + amount), 0.0)
            diagonal[free] = jacobian_of_free.diagonal
            factors_of_free = jacobian_of_free.dense_factors()
            factors = np.zeros((v.size, factors_of_free.shape[1]))
            factors[free] = factors_of_free
            return ProxJacobian(diagonal, factors, jacobian_of_free.coefficients)

        return ProxPoint(point, math.hypot(gauge, inner.gauge), jacobian)

    def _prox_of_free_units(self, v: Array, amount: float) -> ProxPoint:
        """Return the proximal map of (amount / 2) gauge_k^2 at v, the entries of the free units.

        The first attempt ignores the limit sum d <= k. Large entries have the share d_j = 1 and are
        divided by 1 + amount. Middle entries have d_j = |w_j| / least and are soft-thresholded by
        least * amount. Small entries become 0. If the shares exceed k, the map is that of the
        k-support norm, because the prices are constant then.
        """
        # ``least`` is the weight from which on a unit has the full price, see the property.
        least = self.least
        magnitudes = np.abs(v)
        is_full = magnitudes >= least * (1.0 + amount)
        is_shrunk = ~is_full & (magnitudes > least * amount)
        point = np.where(is_shrunk, v - np.sign(v) * least * amount, 0.0)
        point[is_full] = v[is_full] / (1.0 + amount)
        shares = np.count_nonzero(is_full) + float(np.abs(point[is_shrunk]).sum()) / max(
            least, 1e-300
        )
        if least and shares < self.k:
            diagonal = np.where(is_full, 1.0 / (1.0 + amount), is_shrunk.astype(np.float64))
            return ProxPoint(point, self._free_gauge(point), lambda: ProxJacobian(diagonal))
        inner = ksupport_point(v, self.k, amount, "squared")
        return replace(inner, gauge=math.hypot(inner.gauge, least * math.sqrt(self.k)))


def _largest(values: Array, count: int) -> Array:
    """Return the ``count`` largest values in any order; all values if there are fewer."""
    if not 0 < count < values.size:
        return values if count else values[:0]
    return np.partition(values, values.size - count)[values.size - count :]
