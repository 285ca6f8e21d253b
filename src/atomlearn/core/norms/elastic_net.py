"""ElasticNetNorm: max(||w||_2, ||w||_1 / sqrt k), the intersection of an l1 and an l2 ball."""

from __future__ import annotations

import math

import numpy as np

from atomlearn import _kernels
from atomlearn._support import l2_norm, positive, power_of_two, to_float64
from atomlearn.core.interfaces import (
    Array,
    Atom,
    Columns,
    Form,
    Norm,
    ProxJacobian,
    ProxPoint,
    Scores,
)
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.forms import l1_point, soft_threshold
from atomlearn.core.norms.groups import L2
from atomlearn.core.norms.ksupport import k_grid, required_k


class ElasticNetNorm(VectorNorm):
    """gauge(w) = max(||w||_2, ||w||_1 / sqrt k).

    Its unit ball is the intersection of the unit l2 ball and the l1 ball of radius sqrt k. The
    norm is at most the k-support norm, which is less than sqrt 2 times this norm. Its polar (dual)
    norm is an infimal convolution, min over a of ||a||_2 + sqrt k ||z - a||_inf. The minimizing a
    is z soft-thresholded at the theta with ||a||_1 = sqrt k ||a||_2, or theta = 0 if z already has
    a smaller ratio. The best atom is this a / ||a||_2; it depends only on the largest scores.

    Parameters
    ----------
    k : number >= 1, optional
        1 gives the l1 norm, the number of coordinates (or more) the l2 norm. k need not be a whole
        number: a solution w of the elastic net (l1 plus squared l2 penalty) is also a solution with
        this norm, for k = (||w||_1 / ||w||_2)^2. None: cross-validated estimators choose k, and
        other estimators and functions need a k.

    References
    ----------
    Argyriou, Foygel, Srebro (2012), section 3, arXiv:1204.5043.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.ElasticNetNorm(k=2).value(np.array([3.0, 0.0, -4.0]))
    5.0
    """

    def __init__(self, k: float | None = None) -> None:
        """Store k; ``on`` checks it."""
        self.k = k

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> ElasticNetNorm:
        """Return the norm itself; raise ValueError if k is not a finite number >= 1.

        ``n_features`` and ``shape`` do not matter.
        """
        self._k()
        return self

    def candidates(self, n_samples: int, n_features: int) -> list[Norm]:
        """Return the norms from which cross-validation chooses: this norm only, if k is given.

        Otherwise they have k = 1, 2, 3, 5, 8, ... up to the smaller of n_samples and n_features.
        """
        if self.k is not None:
            return [self]
        return [ElasticNetNorm(k) for k in k_grid(min(n_samples, n_features))]

    def value(self, w: Array) -> float:
        """Return max(||w||_2, ||w||_1 / sqrt k)."""
        w = to_float64(w)
        return max(l2_norm(w), float(np.abs(w).sum()) / math.sqrt(self._k()))

    def polar(self, scores: Scores) -> float:
        """Return ||S(z, theta)||_2 + sqrt k theta, the polar (dual norm) of the scores z.

        S(z, theta) is the soft threshold, at the theta where its l1 norm is sqrt k times its l2
        norm.
        """
        values, theta = self._top_scores(scores)[1:]
        return l2_norm(soft_threshold(values, theta)) + math.sqrt(self._k()) * theta

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the support of the best atom, and further columns of large |z_j|.

        The best atom is the vector a of norm 1 with the largest <a, z>, for the scores z
        (n_features,). There are about ``count`` columns, if the support has no more than that.
        """
        columns, values, theta = self._top_scores(scores)
        # If the largest scores tie, theta is their magnitude, and any k of them give an atom.
        size = int(np.count_nonzero(np.abs(values) > theta))
        size = max(size, min(math.ceil(self._k()), values.size))
        return columns[:size] if count <= size else scores.top(count)[0]

    def reference(self, scores: Scores) -> float:
        """Return theta: the columns with |z_j| > theta are the support of the best atom.

        The best atom is the vector a of norm 1 with the largest <a, z>, for the scores z
        (n_features,).
        """
        return self._top_scores(scores)[2]

    def best_atom(self, scores: Scores) -> Atom:
        """Return the atom a (vector of norm 1) with the largest <a, z>, for the scores z.

        It is S(z, theta) / ||S(z, theta)||_2, with S the soft threshold. If this is 0 / 0, as the
        largest scores tie, the atom has floor(k) entries sign(z_j) / sqrt k, one entry with the
        fractional part of k over sqrt k, and zeros. So ||a||_1 = sqrt k and ||a||_2 <= 1.
        """
        columns, values, theta = self._top_scores(scores)
        shrunk = soft_threshold(values, theta)
        if not shrunk.any():
            # 1, ..., 1, the fractional part of k, 0, ..., divided by sqrt k.
            share = np.clip(self._k() - np.arange(values.size), 0.0, 1.0) / math.sqrt(self._k())
            support = np.flatnonzero(share * values)
            return Atom(columns[support], (np.sign(values) * share)[support])
        support = np.flatnonzero(shrunk)
        return Atom(columns[support], shrunk[support] / l2_norm(shrunk[support]))

    def _top_scores(self, scores: Scores) -> tuple[Columns, Array, float]:
        """Return columns and scores of the largest |z_j|, and theta, the best atom's threshold.

        The best atom is a multiple of the soft-thresholded scores S(z, theta), with the theta at
        which ||S||_1 = sqrt k ||S||_2. The largest |z_j| determine theta. scores : z (n_features,).
        """
        k = self._k()
        # The number of scores that are needed is not known: it is enlarged until it suffices.
        count = min(4 * math.ceil(k), scores.n_columns)
        while True:
            columns, values = scores.top(count)
            theta = _balance_level(values, k)
            # Scores with |z_j| <= theta have no effect. All other columns have |z_j| of at most the
            # last value, so that they have no effect if theta is at least that.
            if count >= scores.n_columns or values.size < count or theta >= abs(values[-1]):
                return columns, values, theta
            count = min(4 * count, scores.n_columns)

    def _k(self) -> float:
        """Return k as a float; raise ValueError if it is not a finite number >= 1."""
        return positive("ElasticNetNorm: k", required_k(self), least=1.0)

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at v (n,): a soft threshold followed by a scaling.

        The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus
        (amount / 2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on
        gauge(x) <= amount. The gauge is this norm. There are three cases at the solution: the l2
        norm is larger (no threshold), the scaled l1 norm is larger (no scaling), or both are equal
        and the threshold is theta for any amount.
        """
        k = self._k()
        root_k = math.sqrt(k)
        theta = _balance_level(v, k)
        # theta = 0: the l2 norm is the larger one at v, and at all multiples of v.
        if theta == 0.0:
            return L2().prox_point(v, amount, form)
        shrunk = soft_threshold(v, theta)
        length = l2_norm(shrunk)
        # The polar (dual norm) of v.
        polar = length + root_k * theta
        # ``no_scaling`` : whether the scaled l1 norm is larger at the solution. Then the solution
        # is v after a soft threshold of at most theta; at theta both norms are ``length``.
        # ``gauge`` : that of the solution, if both norms are equal there.
        if form == "penalized":
            no_scaling = amount <= root_k * theta
            gauge = max(polar - amount, 0.0)
        elif form == "squared":
            no_scaling = amount * length <= root_k * theta
            gauge = polar / (1.0 + amount)
        else:
            no_scaling = amount >= length
            gauge = amount
        if no_scaling:
            return l1_point(v, 1.0 / root_k, amount, form)
        if gauge == 0.0:
            return ProxPoint(np.zeros_like(v), 0.0, lambda: ProxJacobian(np.zeros(v.size)))
        direction = shrunk / length

        def jacobian() -> ProxJacobian:
            """Return the Jacobian of the case in which both norms are equal."""
            return _balanced_jacobian(v, direction, gauge / length, k, amount, form)

        return ProxPoint(gauge * direction, gauge, jacobian)

    def restrict(self, columns: Columns, n_features: int) -> ElasticNetNorm:
        """Return the same norm on ``columns``: it depends on no single column.

        n_features : the number of all columns.
        """
        return ElasticNetNorm(self.k)


def _balance_level(v: Array, k: float) -> float:
    """Return the smallest theta >= 0 with ||S(v, theta)||_1 <= sqrt k ||S(v, theta)||_2.

    S is the soft threshold of v (n,). For m active entries, equality holds at mean - deviation *
    sqrt(k / (m - k)) of their magnitudes, a lower bound of theta. Entries at or below it are
    removed until none is left to remove, in a few rounds of O(n) each.
    """
    scale = power_of_two(v)
    return scale * _kernels.balance_level(v / scale, k)


def _balanced_jacobian(
    v: Array, direction: Array, ratio: float, k: float, amount: float, form: Form
) -> ProxJacobian:
    """Return the Jacobian of the proximal map at v (n,), in the case in which both norms are equal.

    It is ratio * (P - u u' - q q' / (m - k)) + a u u'. Here u = ``direction`` has m nonzero
    (active) entries, P is the diagonal projection on them, and q = sign(v) - sqrt k u on them.
    ``ratio`` is the gauge of the result, divided by the length of the soft-thresholded v. The
    number a is the derivative of that gauge with respect to the polar (dual norm) of v. It depends
    on ``form``: 1 for "penalized", 1 / (1 + amount) for "squared", and 0 for "constrained".
    """
    active = direction != 0
    count = int(np.count_nonzero(active))
    a = {"penalized": 1.0, "squared": 1.0 / (1.0 + amount), "constrained": 0.0}[form]
    factors = [direction]
    coefficients = [a - ratio]
    if count > k:
        factors.append(np.where(active, np.sign(v), 0.0) - math.sqrt(k) * direction)
        coefficients.append(-ratio / (count - k))
    return ProxJacobian(ratio * active, np.column_stack(factors), np.array(coefficients))
