"""The three proximal maps of the k-support norm, all from the map of its squared form.

The proximal map of (mu / 2) gauge^2 is w(mu) = v d / (d + mu), where d_j = clip(t |v_j| - mu, 0, 1)
and sum d = k. The penalized form has the same point at the mu with mu * gauge(w(mu)) = step, and
the constrained form at the mu with gauge(w(mu)) = radius. Given the pattern of d (which d_j are 1,
and which are between 0 and 1), these two equations are

    F(x)^2 = A^2 / (1 + x)^2 + K V^2 / (K + m x)^2 = radius^2                  x = mu
    F(x)^2 = A^2 / (1 + x)^2 + K V^2 / (K x + m)^2 = step^2                    x = 1 / mu

Here Q is the number of d_j = 1, A^2 the sum of their v_j^2, m the number of 0 < d_j < 1, V the sum
of their |v_j|, and K = k - Q. The root x is in [polar(v) / amount - 1, gauge(v) / amount - 1]. For
a given pattern the equation is solved, and the solution gives the next pattern. If that pattern is
the same, the root is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn._support import power_of_two
from atomlearn.core.interfaces import TINY, Array, Form, ProxJacobian, ProxPoint


@dataclass(frozen=True, slots=True)
class Pattern:
    """w = argmin_x 1/2 ||x - v||^2 + (mu / 2) gauge(x)^2, with the pattern of its scaling d.

    w_j = v_j d_j / (d_j + mu) for d_j = clip(t |v_j| - mu, 0, 1) with sum d = k. ``point`` is w,
    ``ones`` the mask of the Q entries with d_j = 1, and ``middle`` the mask of the m entries with
    0 < d_j < 1.
    """

    v: Array
    k: int
    mu: float
    point: Array
    ones: NDArray[np.bool_]
    middle: NDArray[np.bool_]

    @classmethod
    def at(cls, v: Array, k: int, mu: float) -> Pattern:
        """Return the pattern of argmin_x 1/2 ||x - v||^2 + (mu / 2) gauge(x)^2 at v (n,).

        v must be scaled to max |v_j| <= 1. k : the number of nonzero entries of an atom of the
        norm; mu > 0.
        """
        weights, t = _kernels.ksupport_prox(v, k, mu)
        point = np.asarray(weights, dtype=np.float64)
        # At most k nonzero entries: all of them have d_j = 1.
        if math.isinf(t):
            return cls(v, k, mu, point, v != 0, np.zeros(v.size, dtype=bool))
        unclipped = t * np.abs(v) - mu
        ones = unclipped >= 1.0
        # Rounding can leave a tiny d > 0 next to k entries that have d = 1.
        middle = (unclipped > 0.0) & ~ones & (np.count_nonzero(ones) < k)
        if not (ones.any() or middle.any()):
            # mu is so large that t |v| - mu cancels: every remaining entry has 0 < d < 1.
            middle = point != 0
        return cls(v, k, mu, point, ones, middle)

    @property
    def count(self) -> int:
        """m, the number of entries with 0 < d_j < 1."""
        return int(np.count_nonzero(self.middle))

    @property
    def budget(self) -> float:
        """K, the sum of d_j over the entries with 0 < d_j < 1.

        It is k minus the number of entries with d_j = 1, since all d_j add up to k.
        """
        return max(float(self.k - np.count_nonzero(self.ones)), 0.0)

    @property
    def level(self) -> float:
        """1 / t, with d_j = clip(t |v_j| - mu, 0, 1); it is |v_j - w_j| / mu where 0 < d_j < 1.

        It equals V / (K + mu m) for the m entries with 0 < d_j < 1, where V is the sum of their
        |v_j|, and K the sum of their d_j. It is 0 if there are no such entries.
        """
        total = float(np.abs(self.v[self.middle]).sum())
        return total / (self.budget + self.mu * self.count) if total else 0.0

    def gauge(self) -> float:
        """Return gauge(w), with gauge(w)^2 = sum over d_j > 0 of w_j^2 / d_j."""
        # w_j = v_j / (1 + mu) if d_j = 1; the other entries add K level^2, K = ``budget``.
        largest = self.v[self.ones] / (1.0 + self.mu)
        return math.sqrt(float(largest @ largest) + self.budget * self.level**2)


def ksupport_point(v: Array, k: int, amount: float, form: Form) -> ProxPoint:
    """Return the proximal map of ``form`` of the k-support norm at v (n,); k may exceed v.size.

    The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus (amount /
    2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on gauge(x) <= amount.
    The gauge is the k-support norm.
    """
    k = max(1, min(k, v.size))
    scale = power_of_two(v)
    scaled = v / scale
    if form == "squared":
        # The point is v itself for a step of 0.
        if amount == 0.0:
            return _identity(v, _kernels.ksupport_gauge(scaled, k) * scale)
        pattern = Pattern.at(scaled, k, amount)
        gauge = pattern.gauge()
    else:
        amount /= scale
        gauge = _kernels.ksupport_gauge(scaled, k)
        if (amount == 0.0) if form == "penalized" else (gauge <= amount):
            return _identity(v, gauge * scale)
        # The point is 0 for a step beyond the polar, the l2 norm of the k largest entries.
        polar = float(np.linalg.norm(_kernels.top_magnitude(scaled, k)[1]))
        if (polar <= amount) if form == "penalized" else (amount == 0.0):
            return ProxPoint(np.zeros_like(v), 0.0, lambda: ProxJacobian(np.zeros(v.size)))
        # The kernel solves the equation F(x) = amount of the module docstring, pattern by pattern,
        # beginning at the upper end of the interval of x.
        guess = max(gauge / amount - 1.0, TINY)
        mu = _kernels.ksupport_multiplier(scaled, k, amount, form == "penalized", guess)
        if mu == 0.0:  # the amount is below the last digit of v
            return _identity(v, gauge * scale)
        pattern = Pattern.at(scaled, k, mu)
        gauge = amount / pattern.mu if form == "penalized" else amount
    return ProxPoint(pattern.point * scale, gauge * scale, lambda: _jacobian(pattern, form))


def _identity(v: Array, gauge: float) -> ProxPoint:
    """Return a proximal point that is v (n,) itself, with the Jacobian I.

    gauge : the norm of v.
    """
    return ProxPoint(v.copy(), gauge, lambda: ProxJacobian(np.ones(v.size)))


def _jacobian(pattern: Pattern, form: Form) -> ProxJacobian:
    """Return the generalized Jacobian of ``form``: J of the squared form, plus a rank-one term.

    pattern : the squared form with the same point; K, m and mu are defined in the module docstring.
    The Jacobian J of the squared form is 1 / (1 + mu) on the entries with d_j = 1. On those with
    0 < d_j < 1 it is the identity minus c s s', with s the signs of v and c = mu / (K + mu m). With
    n the gradient of the gauge, "constrained" subtracts (J n)(J n)' / n'Jn, and "penalized" adds
    (J n)(J n)' / (1 / mu - n'Jn). Both denominators are computed as sums of positive terms.
    """
    # ``budget`` is K, ``count`` is m; ``ones`` and ``middle`` are the masks of the entries with
    # d_j = 1 and with 0 < d_j < 1.
    v = pattern.v
    mu = pattern.mu
    budget = pattern.budget
    count = pattern.count
    ones = pattern.ones
    middle = pattern.middle
    if budget and not count:
        # With fewer than k nonzeros, zeros that become nonzero get d = 1, up to k entries in all.
        # The first zeros are chosen.
        ones = ones.copy()
        ones[np.flatnonzero(~ones)[: int(budget)]] = True
    diagonal = np.where(ones, 1.0 / (1.0 + mu), middle.astype(np.float64))
    signs = np.where(middle, np.sign(v), 0.0)
    factors = []
    coefficients = []
    if count:
        factors.append(signs)
        coefficients.append(-mu / (budget + mu * count))
    if form != "squared":
        # ``gradient`` is g = gauge * n, and ``shrunk`` is J g.
        level = pattern.level
        share = budget / (budget + mu * count) if count else 1.0
        gradient = np.where(ones, v / (1.0 + mu), level * signs)
        shrunk = gradient * np.where(middle, share, 1.0 / (1.0 + mu))
        # With g, "penalized" adds mu (J g)(J g)' / (gauge^2 - mu g'J g). The denominator is a sum
        # over the entries with d_j = 1, plus K times ``middle_term`` for those with 0 < d_j < 1.
        ones_term = float(v[pattern.ones] @ v[pattern.ones]) / (1.0 + mu) ** 3
        middle_term = level * level * share
        if form == "constrained":
            # The length of n cancels, so g is divided by its largest entry, because it could
            # underflow for large mu.
            length = float(np.abs(gradient).max(initial=0.0)) or 1.0
            gradient = gradient / length
            shrunk = shrunk / length
            coefficient = -1.0 / float(gradient @ shrunk)
        else:
            coefficient = mu / (ones_term + budget * middle_term)
        factors.append(shrunk)
        coefficients.append(coefficient)
    if not factors:
        return ProxJacobian(diagonal)
    return ProxJacobian(diagonal, np.column_stack(factors), np.array(coefficients))
