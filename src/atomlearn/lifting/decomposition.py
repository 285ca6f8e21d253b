"""The value of a lifted group norm: a small convex problem, solved with its own duality gap.

gauge(w) = min { sum_g delta_g ||u_g|| : sum_g L_g u_g = w }. With sizes eta_g >= 0 and
D = sum_g eta_g L_g L_g' the best parts are u_g = eta_g L_g's, s = D^-1 w, and

    gauge(w) = min over eta of  1/2 w'D^-1 w + 1/2 sum_g delta_g^2 eta_g,

[Obozinski, Jacob, Vert 2011, section 3; Maurer, Pontil 2012]. Every eta proves two bounds: the
root of the product of twice the two sums is at least gauge(w), and <w, s> / max_g (||L_g's|| /
delta_g) is at most that. Where L repeats features (latent groups) D is diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from atomlearn.core.interfaces import Array, Columns, GroupWeights
from atomlearn.core.interfaces.lift import Expansion
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.vectors import power_of_two

#: Relative gap of the decomposition of w into parts of groups.
DECOMPOSED = 1e-10


@dataclass(frozen=True, slots=True)
class Family:
    """Sets of columns of L: ``matrix`` (p, m), ``labels`` (m,) the set of each column, ``delta``.

    repeats : whether each column of L is one feature, so that D is diagonal and L sparse; else L
    is dense.
    """

    matrix: Any
    labels: Columns
    delta: Array
    repeats: bool

    @classmethod
    def of(cls, expansion: Expansion, groups: GroupWeights, w: Array) -> Family:
        """Return the sets, those that only repeat features cut down to the features with w != 0."""
        delta = groups.weights
        if not expansion.repeats:
            return cls(expansion.matrix.toarray(), groups.labels, delta, False)
        used = w != 0
        kept = np.flatnonzero(used[expansion.matrix.indices])
        sets, labels = np.unique(groups.labels[kept], return_inverse=True)
        matrix = expansion.matrix[:, kept][np.flatnonzero(used)]
        return cls(matrix, labels.ravel(), delta[sets], True)

    def take(self, sets: Columns) -> Family:
        """Return these sets, in their order."""
        place = np.full(self.delta.size, -1, dtype=np.int64)
        place[sets] = np.arange(sets.size)
        kept = np.flatnonzero(place[self.labels] >= 0)
        labels = place[self.labels[kept]]
        return Family(self.matrix[:, kept], labels, self.delta[sets], self.repeats)

    def dual(self, V: Array, eta: Array) -> Array:
        """Return D(eta)^-1 V."""
        shares = eta[self.labels]
        if self.repeats:
            return np.asarray((V.T / (self.matrix @ shares)).T)
        factor = cho_factor((self.matrix * shares) @ self.matrix.T, lower=True, check_finite=False)
        return cho_solve(factor, V, check_finite=False)

    def squares(self, s: Array) -> Array:
        """Return ||L_g's||^2 for every set."""
        shares: Array = (self.matrix.T @ s) ** 2
        return np.asarray(np.bincount(self.labels, shares, self.delta.size), dtype=np.float64)

    def hessian(self, s: Array, eta: Array) -> Array:
        """Return V'D^-1 V, V_g = L_g L_g's."""
        m = self.labels.size
        parts = self.matrix.T @ s, self.labels, np.arange(m + 1)
        images = self.matrix @ sparse.csr_array(parts, shape=(m, self.delta.size))
        images = images.toarray() if self.repeats else images
        return np.asarray(images.T @ self.dual(images, eta))

    def cover(self, w: Array) -> Columns:
        """Return sets enough for D to be invertible: for each feature the one with most of w."""
        if not self.repeats:
            return np.arange(self.delta.size, dtype=np.int64)
        rating = np.sqrt(self.squares(w)) / self.delta
        features = self.matrix.indices
        order = np.lexsort((rating[self.labels], features))
        last = np.append(np.diff(features[order]) != 0, True)
        return np.unique(self.labels[order[last]])


def value_of_groups(w: Array, expansion: Expansion, groups: GroupWeights) -> float:
    """Return gauge(w), an upper bound, to a relative gap of 1e-10 (or what rounding allows).

    Column generation over the sets: an interior point method solves for the sizes of a few of
    them, the polar over all of them says which others are needed, and when none is.

    Raises
    ------
    ValueError
        Where w is not a sum of parts: the gauge is infinite.
    """
    family, scale = Family.of(expansion, groups, w), power_of_two(w)
    w = (w[w != 0] if family.repeats else w) / scale
    active = family.cover(w)
    eta = np.full(active.size, 1.0)
    best_low, best_high = 0.0, np.inf
    # Each round lets some sets in: many overlapping ones need more rounds than a method has steps.
    for _ in range(2 * TUNING.inner_steps):
        some = family.take(active)
        try:
            eta = _sizes(w, some, eta)
            s = some.dual(w, eta)
        except LinAlgError as error:
            raise ValueError(
                "the gauge is infinite, or nearly so: w is not a sum of parts on the sets"
            ) from error
        lengths = np.sqrt(family.squares(s)) / family.delta
        inner = float(w @ s)
        best_high = min(best_high, float(np.sqrt(inner * float(some.delta**2 @ eta))))
        best_low = max(best_low, inner / float(lengths.max()))
        if best_high - best_low <= DECOMPOSED * best_high:
            break
        order = np.argsort(-lengths, kind="stable")[: max(50, active.size)]
        new = np.setdiff1d(order[lengths[order] > 1.0], active)
        keep = eta > 1e-14 * eta.max()
        if not new.size and (keep.all() or best_high - best_low <= 10 * DECOMPOSED * best_high):
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
