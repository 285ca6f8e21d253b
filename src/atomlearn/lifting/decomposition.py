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

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from atomlearn.core.interfaces import Array, Columns
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.norms.vectors import power_of_two
from atomlearn.lifting.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class FewLatent:
    """A few sets of features: ``member`` is a dense array of 0 and 1; D is diagonal."""

    member: Array
    delta: Array

    def dual(self, w: Array, eta: Array) -> Array:
        """Return s = D(eta)^-1 w."""
        return np.asarray(w / (eta @ self.member))

    def squares(self, s: Array) -> Array:
        """Return ||L_g's||^2 for every set."""
        return np.asarray(self.member @ (s * s))

    def hessian(self, s: Array, eta: Array) -> Array:
        """Return V'D^-1 V, V_g = L_g L_g's."""
        scaled = self.member * (np.abs(s) / np.sqrt(eta @ self.member))
        return np.asarray(scaled @ scaled.T)


@dataclass(frozen=True, slots=True)
class LatentFamily:
    """All sets of features: ``member`` is (n_sets, n_features) CSR of ones; D is diagonal."""

    member: sparse.csr_array
    delta: Array

    @classmethod
    def on(cls, used: Columns, members: Columns, starts: Columns, delta: Array) -> LatentFamily:
        """Return the sets cut down to the features ``used``, those that are left with any."""
        place = np.full(int(members.max()) + 1, -1, dtype=np.int64)
        place[used] = np.arange(used.size)
        local = place[members]
        inside = local >= 0
        counts = np.add.reduceat(inside.astype(np.int64), starts[:-1])
        kept = np.flatnonzero(counts)
        indptr = np.concatenate([[0], np.cumsum(counts[kept])])
        parts = (np.ones(int(indptr[-1])), local[inside], indptr)
        return cls(sparse.csr_array(parts, shape=(kept.size, used.size)), delta[kept])

    def take(self, sets: Columns) -> FewLatent:
        """Return these sets."""
        return FewLatent(self.member[sets].toarray(), self.delta[sets])

    def squares(self, s: Array) -> Array:
        """As of a few sets."""
        return np.asarray(self.member @ (s * s))

    def cover(self, w: Array) -> Columns:
        """Return sets enough for D to be invertible, those with much of w first."""
        rating = np.sqrt(self.squares(w)) / self.delta
        rows = np.repeat(np.arange(rating.size), np.diff(self.member.indptr))
        order = np.lexsort((rating[rows], self.member.indices))
        columns = self.member.indices[order]
        last = np.append(np.flatnonzero(np.diff(columns)), columns.size - 1)
        return np.unique(rows[order][last])


@dataclass(frozen=True, slots=True)
class OperatorFamily:
    """Sets, all or a few, of columns of any L: ``matrix`` is dense (p, m), ``starts`` their runs.

    Its methods are those of ``LatentFamily`` and ``FewLatent``.
    """

    matrix: Array
    starts: Columns
    delta: Array

    def take(self, sets: Columns) -> OperatorFamily:
        runs = [np.arange(self.starts[g], self.starts[g + 1]) for g in sets]
        starts = np.cumsum([0, *(run.size for run in runs)], dtype=np.int64)
        return OperatorFamily(self.matrix[:, np.concatenate(runs)], starts, self.delta[sets])

    def _factor(self, eta: Array) -> tuple[Array, bool]:
        scaled = self.matrix * np.repeat(eta, np.diff(self.starts))
        product = scaled @ self.matrix.T
        lower: tuple[Array, bool] = cho_factor(product, lower=True, check_finite=False)
        return lower

    def dual(self, w: Array, eta: Array) -> Array:
        return np.asarray(cho_solve(self._factor(eta), w, check_finite=False))

    def squares(self, s: Array) -> Array:
        return np.asarray(np.add.reduceat((self.matrix.T @ s) ** 2, self.starts[:-1]))

    def hessian(self, s: Array, eta: Array) -> Array:
        products = self.matrix * (self.matrix.T @ s)
        images = np.add.reduceat(products, self.starts[:-1], axis=1)
        return np.asarray(images.T @ cho_solve(self._factor(eta), images, check_finite=False))

    def cover(self, w: Array) -> Columns:
        return np.arange(self.delta.size, dtype=np.int64)


def latent_value(w: Array, members: Columns, starts: Columns, delta: Array) -> float:
    """Return gauge(w) of latent groups: set g holds members[starts[g]:starts[g + 1]]."""
    used = np.flatnonzero(w)
    if not used.size:
        return 0.0
    return family_value(w[used], LatentFamily.on(used, members, starts, delta))


def family_value(w: Array, family: LatentFamily | OperatorFamily) -> float:
    """Return gauge(w), an upper bound, to a relative gap of 1e-10 (or what rounding allows).

    Column generation over the sets: an interior point method solves for the sizes of a few of
    them, the polar over all of them says which others are needed, and when none is.

    Raises
    ------
    ValueError
        Where w is not a sum of parts: the gauge is infinite.
    """
    scale = power_of_two(w)
    w = w / scale
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
        if best_high - best_low <= SETTINGS.decomposed_gap * best_high:
            break
        order = np.argsort(-lengths, kind="stable")[: max(50, active.size)]
        new = np.setdiff1d(order[lengths[order] > 1.0], active)
        keep = eta > 1e-14 * eta.max()
        if not new.size and (
            keep.all() or best_high - best_low <= 10 * SETTINGS.decomposed_gap * best_high
        ):
            break
        active = np.concatenate([active[keep], new])
        eta = np.concatenate([eta[keep], np.full(new.size, 0.1 * float(eta.mean()))])
    return scale * best_high


def _sizes(w: Array, family: FewLatent | OperatorFamily, eta: Array) -> Array:
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
