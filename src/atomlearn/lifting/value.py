"""The value of a norm given by its lift: min { inner(u) : L u = w } with bounds from both sides.

Of sets that share features it is a small convex problem, solved with its own duality gap:

gauge(w) = min { sum_g delta_g ||u_g|| : sum_g L_g u_g = w }. With sizes eta_g >= 0 and
D = sum_g eta_g L_g L_g' the best parts are u_g = eta_g L_g's, s = D^-1 w, and

    gauge(w) = min over eta of  1/2 w'D^-1 w + 1/2 sum_g delta_g^2 eta_g,

[Obozinski, Jacob, Vert 2011, section 3; Maurer, Pontil 2012]. Every eta proves two bounds: the
root of the product of twice the two sums is at least gauge(w), and <w, s> / max_g (||L_g's|| /
delta_g) is at most that. As L repeats features, D is diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

from atomlearn.core.interfaces import Array, Columns, GroupWeights, Lift, Norm
from atomlearn.core.interfaces.certificate import TINY
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.vectors import power_of_two

#: Relative gap of a value.
GAP = 1e-9


def lifted_value(lift: Lift, w: Array) -> float:
    """Return min { inner(u) : L u = w }; an upper bound, certified to a relative gap of 1e-9.

    Sets of features have a method of their own. Otherwise the alternating direction method: the
    inner norm's prox, and projections onto L u = w. Each iteration gives a u that fulfils the
    equation (an upper bound) and a dual s, scaled into the polar's ball (a lower bound <w, s>).

    Raises
    ------
    ValueError
        Where w is no L u: the gauge is infinite.
    RuntimeError
        Where the bounds do not meet after 100,000 iterations; with both of them.
    """
    if not w.any():
        return 0.0
    norm, matrix = lift.norm, lift.expansion.matrix
    groups = norm.as_groups(matrix.shape[1])
    if groups is not None and lift.expansion.repeats:
        return value_of_groups(w, matrix.indices.astype(np.int64), groups)
    if not norm.proximal:
        raise TypeError(f"the value of {norm!r} needs a proximal map")
    scale = float(np.abs(w).max())
    return scale * _alternating(norm, matrix, w / scale)


def _alternating(norm: Norm, matrix: sparse.csc_array, w: Array) -> float:
    try:
        solve = splu(sparse.csc_array(matrix @ matrix.T))
        u = matrix.T @ solve.solve(w)
        reached = np.allclose(matrix @ u, w)
    except RuntimeError:  # the product is singular
        reached = False
    if not reached:
        raise ValueError("the gauge is infinite, or nearly so: w is not a sum of parts on the sets")
    dual, step, balance = np.zeros(u.size), 1.0, 20
    low, high = 0.0, norm.value(u)
    for iteration in range(1, TUNING.most_steps + 1):
        x = norm.prox_point(u - dual, step, "penalized").point
        shifted = x + dual
        before, u = u, shifted + matrix.T @ solve.solve(w - matrix @ shifted)
        dual = shifted - u
        if iteration % 10 == 0:
            high = min(high, norm.value(u))
            s = solve.solve(-(matrix @ dual)) / step
            polar = norm.polar(ArrayScores(matrix.T @ s))
            low = max(low, float(w @ s) / polar if polar > 0 else 0.0)
            if high - low <= GAP * high:
                return high
        if iteration >= balance:  # ever more rarely, so that it settles
            balance = int(1.5 * balance)
            factor = _balancing(x, u, before, dual)
            step, dual = step * factor, dual * factor
    raise RuntimeError(
        f"the value lies between {low} and {high} (for max |w| = 1), and more iterations are "
        "needed to tell it closer; use solve() with this norm, which needs no value"
    )


def _balancing(x: Array, u: Array, before: Array, dual: Array) -> float:
    """Return the factor of the step that balances the relative residuals, at most 5 either way.

    The residuals are those of [Boyd et al. 2011, 3.3], each relative to what it is a residual of
    [Wohlberg 2017]: in absolute terms they can differ for ever where the dual is small, and the
    step then runs away. A large step makes x small: the primal residual grows with it.
    """
    primal = float(np.linalg.norm(x - u)) / max(float(np.linalg.norm(u)), TINY)
    change = float(np.linalg.norm(u - before)) / max(float(np.linalg.norm(dual)), TINY)
    if primal <= TINY or change <= TINY:
        return 1.0
    factor = float(np.clip(np.sqrt(change / primal), 0.2, 5.0))
    return factor if abs(np.log(factor)) > np.log(1.5) else 1.0


@dataclass(frozen=True, slots=True)
class Family:
    """Sets: coordinate i of u is the feature features[i] in the set labels[i]; delta a set."""

    features: Columns
    labels: Columns
    delta: Array

    @classmethod
    def of(cls, features: Columns, groups: GroupWeights, w: Array) -> Family:
        """Return the sets cut down to the features with w != 0, which are numbered 0, 1, ..."""
        used = w != 0
        kept = np.flatnonzero(used[features])
        sets, labels = np.unique(groups.labels[kept], return_inverse=True)
        number = np.cumsum(used) - 1
        return cls(number[features[kept]], labels.ravel(), groups.weights[sets])

    def take(self, sets: Columns) -> Family:
        """Return these sets, in their order."""
        place = np.full(self.delta.size, -1, dtype=np.int64)
        place[sets] = np.arange(sets.size)
        kept = np.flatnonzero(place[self.labels] >= 0)
        return Family(self.features[kept], place[self.labels[kept]], self.delta[sets])

    def dual(self, w: Array, eta: Array) -> Array:
        """Return D(eta)^-1 w."""
        return np.asarray(w / np.bincount(self.features, eta[self.labels], w.shape[-1]))

    def squares(self, s: Array) -> Array:
        """Return ||L_g's||^2 for every set."""
        shares: Array = s[self.features] ** 2
        return np.asarray(np.bincount(self.labels, shares, self.delta.size), dtype=np.float64)

    def hessian(self, s: Array, eta: Array) -> Array:
        """Return V'D^-1 V, V_g = L_g L_g's."""
        images = np.zeros((self.delta.size, s.size))
        images[self.labels, self.features] = s[self.features]
        return np.asarray(images @ self.dual(images, eta).T)

    def cover(self, w: Array) -> Columns:
        """Return sets enough for D to be invertible: for each feature the one with most of w."""
        rating = np.sqrt(self.squares(w)) / self.delta
        order = np.lexsort((rating[self.labels], self.features))
        last = np.append(np.diff(self.features[order]) != 0, True)
        return np.unique(self.labels[order[last]])


def value_of_groups(w: Array, features: Columns, groups: GroupWeights) -> float:
    """Return gauge(w), an upper bound, to a relative gap of 1e-9 (or what rounding allows).

    Column generation over the sets: an interior point method solves for the sizes of a few of
    them, the polar over all of them says which others are needed, and when none is.
    """
    family, scale = Family.of(features, groups, w), power_of_two(w)
    w = w[w != 0] / scale
    active = family.cover(w)
    eta = np.full(active.size, 1.0)
    best_low, best_high = 0.0, np.inf
    # Each round lets some sets in: many overlapping ones need more rounds than a method has steps.
    for _ in range(2 * TUNING.inner_steps):
        some = family.take(active)
        eta = _sizes(w, some, eta)
        s = some.dual(w, eta)
        lengths = np.sqrt(family.squares(s)) / family.delta
        inner = float(w @ s)
        best_high = min(best_high, float(np.sqrt(inner * float(some.delta**2 @ eta))))
        best_low = max(best_low, inner / float(lengths.max()))
        if best_high - best_low <= GAP * best_high:
            break
        order = np.argsort(-lengths, kind="stable")[: max(50, active.size)]
        new = np.setdiff1d(order[lengths[order] > 1.0], active)
        keep = eta > 1e-14 * eta.max()
        if not new.size and keep.all():
            break
        active = np.concatenate([active[keep], new])
        eta = np.concatenate([eta[keep], np.full(new.size, 0.1 * float(eta.mean()))])
    return scale * best_high


def _sizes(w: Array, family: Family, eta: Array) -> Array:
    """Return argmin over eta >= 0 of 1/2 w'D^-1 w + 1/2 delta^2'eta.

    Primal-dual interior point: (H + diag(lambda / eta)) d eta = -(gradient - mu / eta), cut before
    the boundary and until the barrier function, of which it is a descent direction, decreases.
    """
    half = 0.5 * family.delta**2
    # The best common factor of the start: the two sums balance at the optimum.
    eta = eta * np.sqrt(float(w @ family.dual(w, eta)) / float(2.0 * half @ eta))
    slack = np.full(eta.size, float(half @ eta) / eta.size) / eta
    s = family.dual(w, eta)
    for _ in range(TUNING.inner_steps):
        gradient = half - 0.5 * family.squares(s)
        product, total = float(eta @ slack), float(half @ eta)
        if product <= 1e-13 * total and np.abs(eta * (gradient - slack)).sum() <= 1e-12 * total:
            break
        mu = 0.1 * product / eta.size
        hessian = family.hessian(s, eta)
        hessian[np.diag_indices(eta.size)] += slack / eta + 1e-300
        factor = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
        step = cho_solve(factor, mu / eta - gradient, check_finite=False)
        slack_step = mu / eta - slack - slack / eta * step
        slope = float((gradient - mu / eta) @ step)
        before = 0.5 * float(w @ s) + float(half @ eta) - mu * float(np.log(eta).sum())
        length = longest_inside(eta, step)
        for _ in range(TUNING.inner_steps):
            trial = eta + length * step
            s = family.dual(w, trial)
            ahead = 0.5 * float(w @ s) + float(half @ trial) - mu * float(np.log(trial).sum())
            if ahead <= before + 0.01 * length * slope + 1e-15 * abs(before):
                break
            length *= 0.5
        slack = slack + longest_inside(slack, slack_step) * slack_step
        eta = trial
    return np.maximum(eta, 1e-300)


def longest_inside(x: Array, change: Array) -> float:
    """Return the step, at most 1, that keeps x positive with a margin."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, 0.99 * float((-x[falling] / change[falling]).min()))
