"""The proximal maps of ``AtMost``: scalings d with a limit on each group and on all of them.

d_j = clip(t_j |v_j| - mu, 0, 1), where t_j is common to a *pool*: a group that fills its own limit,
or all that is left, which shares what is left of k. Over a pool with Q entries at d = 1, m between,
V their sum of |v_j| and K = limit - Q, 1 / t = V / (K + mu m): once it is known which entries lie
where, everything is a formula. Which do is found from
running sums over the sorted bends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from atomlearn.core.interfaces import Array, Columns, Form, ProxJacobian, ProxPoint
from atomlearn.core.norms.partition import Partition
from atomlearn.core.norms.vectors import power_of_two

#: Sizes, of at most about 1, that count as none: their bends would lie beyond all floats.
NOTHING = 1e-280


@dataclass(frozen=True, slots=True)
class Caps:
    """k : limit on all; partition : the groups; most : (n_groups,) limit on each."""

    k: int
    partition: Partition
    most: Columns

    def greedy(self, size: Array) -> Columns:
        """Return the columns of the k largest sizes within the limits, largest first."""
        order = np.argsort(-size, kind="stable")
        of_group = self.partition.labels[order]
        # The rank of each within its group, in this order.
        grouped = np.argsort(of_group, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.partition.sizes)[:-1]])
        rank = np.empty(size.size, dtype=np.int64)
        rank[grouped] = np.arange(size.size) - starts[of_group[grouped]]
        taken = order[rank < self.most[of_group]]
        return np.asarray(taken[: self.k], dtype=np.int64)

    def gauge(self, size: Array) -> float:
        """Return sqrt(min_d sum size^2 / d)."""
        return Pools.at(size, self, 0.0).gauge()


@dataclass(frozen=True, slots=True)
class Pools:
    """Where each entry lies at one mu, and what the pools share.

    size : (n,) |v_j|; ones, middle : masks of d = 1 and of 0 < d < 1; pool : (n,) number of each
    entry's pool; count, budget, level : (n_pools,) m, K and 1 / t.
    """

    mu: float
    size: Array
    ones: NDArray[np.bool_]
    middle: NDArray[np.bool_]
    pool: Columns
    count: Array
    budget: Array
    level: Array

    @classmethod
    def at(cls, size: Array, caps: Caps, mu: float) -> Pools:
        """Return them for sizes of at most about 1."""
        t, pool, limit = _levels(size, caps, mu)
        d = _scalings(size, t, mu)
        ones, middle = d >= 1.0, (d > 0.0) & (d < 1.0)
        n_pools = limit.size
        taken = np.bincount(pool[ones], minlength=n_pools)
        count = np.bincount(pool[middle], minlength=n_pools).astype(np.float64)
        total = np.bincount(pool[middle], weights=size[middle], minlength=n_pools)
        budget = np.maximum(limit - taken, 0.0)
        shared = budget + mu * count
        level = np.divide(total, shared, out=np.zeros(n_pools), where=shared > 0)
        return cls(mu, size, ones, middle, pool, count, budget, level)

    def point(self) -> Array:
        """Return |w_j| = |v_j| d_j / (d_j + mu)."""
        between = np.maximum(self.size - self.mu * self.level[self.pool], 0.0)
        whole = self.size / (1.0 + self.mu)
        return np.where(self.ones, whole, np.where(self.middle, between, 0.0))

    def gauge(self) -> float:
        """Return gauge(w), w the point."""
        of_ones = float(np.square(self.size[self.ones]).sum()) / (1.0 + self.mu) ** 2
        return math.sqrt(of_ones + float(self.budget @ self.level**2))

    def jacobian(self, signs: Array, form: Form) -> ProxJacobian:
        """Return the generalized Jacobian of the map of this form at v, whose signs are given.

        Of the squared form I - mu s s' / (K + mu m) over the middle of each pool. With n the
        gradient of the gauge at w, J n is projected out of the constrained form, and the penalized
        one adds (J n)(J n)' / (1 / mu - n'J n): both denominators are sums of positive terms.
        """
        mu, middle = self.mu, self.middle
        whole = 1.0 / (1.0 + mu)
        diagonal = np.where(self.ones, whole, middle.astype(np.float64))
        used = np.flatnonzero(self.count)
        shared = self.budget[used] + mu * self.count[used]
        factors = np.zeros((self.size.size, used.size))
        place = np.full(self.count.size, -1)
        place[used] = np.arange(used.size)
        rows = np.flatnonzero(middle)
        factors[rows, place[self.pool[rows]]] = signs[rows]
        coefficients = -mu / shared
        if form == "squared":
            return ProxJacobian(diagonal, factors, coefficients)
        level = self.level[self.pool]
        share = np.ones(self.count.size)
        share[used] = self.budget[used] / shared
        n = np.where(self.ones, self.size * whole, np.where(middle, level, 0.0)) * signs
        moved = n * np.where(self.ones, whole, share[self.pool])
        if form == "constrained":
            coefficient = -1.0 / max(float(n @ moved), 1e-300)
        else:
            of_ones = float(np.square(self.size[self.ones]).sum()) * whole**3
            rest = of_ones + float((self.budget * share * self.level**2) @ (self.count > 0))
            coefficient = mu / max(rest, 1e-300)
        return ProxJacobian(
            diagonal, np.column_stack([factors, moved]), np.append(coefficients, coefficient)
        )


def at_most_point(v: Array, caps: Caps, amount: float, form: Form) -> ProxPoint:
    """Return one of the three proximal maps at v."""
    scale = power_of_two(v)
    size, signs = np.abs(v) / scale, np.where(v < 0, -1.0, 1.0)
    if form != "squared":
        amount /= scale
    here = caps.gauge(size)
    if (amount >= here) if form == "constrained" else (amount == 0.0):
        return ProxPoint(v.copy(), here * scale, lambda: ProxJacobian(np.ones(v.size)))
    polar = float(np.linalg.norm(size[caps.greedy(size)]))
    if (amount == 0.0) if form == "constrained" else (form == "penalized" and polar <= amount):
        return ProxPoint(np.zeros_like(v), 0.0, lambda: ProxJacobian(np.zeros(v.size)))
    mu = amount
    if form != "squared":
        mu = _multiplier(size, caps, amount, form, polar, here)
    pools = Pools.at(size, caps, mu)
    gauge = pools.gauge() if form != "constrained" else amount
    return ProxPoint(
        np.copysign(pools.point(), v) * scale, gauge * scale, lambda: pools.jacobian(signs, form)
    )


def _multiplier(
    size: Array, caps: Caps, amount: float, form: Form, polar: float, here: float
) -> float:
    """Return mu with gauge(w(mu)) = amount, or mu gauge(w(mu)) = amount (penalized).

    Both lie in [1, 1 + here / amount], less 1, by the bounds of one entry's share.
    """

    def beyond(log_mu: float) -> float:
        mu = math.exp(log_mu)
        gauge = Pools.at(size, caps, mu).gauge()
        return math.log(max(gauge * (mu if form == "penalized" else 1.0), 1e-300) / amount)

    if form == "penalized":
        # mu gauge(w(mu)) grows from 0 to the polar.
        low, high = amount / max(here, 1e-300), 1.0
        while beyond(math.log(high)) < 0.0 and high < 1e12:
            high *= 8.0
        low = min(low, high)
    else:
        low, high = max(polar / amount - 1.0, 1e-18), max(here / amount - 1.0, 1e-18)
        low, high = low * (1 - 1e-9), high * (1 + 1e-9)
    ends = math.log(low) - 1e-9, math.log(high) + 1e-9
    if beyond(ends[0]) * beyond(ends[1]) > 0.0:
        return high if abs(beyond(ends[1])) < abs(beyond(ends[0])) else low
    return math.exp(float(brentq(beyond, *ends, xtol=1e-15, rtol=1e-15)))


def _levels(size: Array, caps: Caps, mu: float) -> tuple[Array, Columns, Array]:
    """Return t of each entry, its pool, and the limit of each pool.

    Pool 0 is of all that no own limit binds; pool 1 + g is group g.
    """
    labels, used = caps.partition.labels, size > NOTHING
    own = np.full(caps.most.size, np.inf)
    full = np.bincount(labels[used], minlength=own.size) > caps.most
    if full.any():
        inside = used & full[labels]
        number = np.cumsum(full) - 1
        limits = caps.most[full].astype(np.float64)
        free = np.full(int(inside.sum()), np.inf)
        own[full] = _filled(size[inside], number[labels[inside]], limits, free, mu)
    most = own[labels]
    common = np.inf
    if float(_scalings(size, most, mu).sum()) > caps.k * (1 + 1e-14):
        one = np.zeros(int(used.sum()), dtype=np.int64)
        common = float(_filled(size[used], one, np.array([float(caps.k)]), most[used], mu)[0])
    bound = own < common
    pool = np.where(bound[labels], 1 + labels, 0)
    limit = np.concatenate([[0.0], np.where(bound, caps.most, 0.0)])
    limit[0] = max(caps.k - limit.sum(), 0.0)
    return np.minimum(most, common), pool, limit


def _filled(size: Array, group: Columns, limits: Array, most: Array, mu: float) -> Array:
    """Return the t of each group at which its d = clip(min(t, most) size - mu, 0, 1) reach a sum.

    That sum is piecewise linear in t and bends twice an entry: at mu / size, and at (1 + mu) / size
    or ``most``. The piece is found from running sums over the sorted bends, and t from what lies
    where at that piece.
    """
    into = np.minimum(mu / size, most)
    bends = np.concatenate([into, np.minimum((1.0 + mu) / size, most)])
    order = np.lexsort((bends, np.concatenate([group, group])))
    at, of = bends[order], np.concatenate([group, group])[order]
    slope = np.cumsum(np.concatenate([size, -size])[order])
    first = np.searchsorted(of, np.arange(limits.size))
    # Each group begins at slope 0 and sum 0: opposite bends of the groups before have cancelled.
    before = np.append(0.0, slope[:-1])
    before[first] = 0.0
    length = np.diff(at, prepend=0.0)
    length[first] = 0.0
    total = np.cumsum(before * length)
    total -= (total[first])[of]
    met = np.flatnonzero(total >= limits[of] * (1.0 - 1e-15))
    groups, place = np.unique(of[met], return_index=True)
    t = np.full(limits.size, np.inf)
    found = met[place]
    over = np.divide(
        total[found] - limits[groups], before[found], out=np.zeros(found.size),
        where=before[found] > 0,
    )  # fmt: skip
    t[groups] = np.maximum(at[found] - over, 0.0)
    for _ in range(2):
        t = _refined(size, group, limits, most, mu, t)
    return t


def _refined(size: Array, group: Columns, limits: Array, most: Array, mu: float, t: Array) -> Array:
    """Return t from the equation of the entries as they lie at t, where it leads nowhere else."""
    n = limits.size
    d = _scalings(size, np.minimum(t[group], most), mu)
    moving = (d > 0.0) & (d < 1.0) & (t[group] < most)
    slope = np.bincount(group[moving], weights=size[moving], minlength=n)
    fixed = np.bincount(group[~moving], weights=d[~moving], minlength=n)
    constant = fixed - mu * np.bincount(group[moving], minlength=n)
    new = np.divide(limits - constant, slope, out=t.copy(), where=slope > 0)
    # Of limits that nothing reaches t is infinite, and stays so.
    change = np.subtract(new, t, out=np.zeros(n), where=np.isfinite(t))
    return np.where(np.abs(change) <= 1e-6 * t, new, t)


def _scalings(size: Array, t: Array, mu: float) -> Array:
    """Return clip(t size - mu, 0, 1), 0 where the size is."""
    # Infinite times zero is no number; those entries are out.
    reached = np.multiply(size, t, out=np.zeros_like(size), where=size > NOTHING)
    return np.clip(reached - mu, 0.0, 1.0)
