"""KSupport: the hull of the k-sparse unit vectors, or of unit vectors over k groups."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from atomlearn import _kernels
from atomlearn._support import power_of_two, to_float64
from atomlearn.core.interfaces import Array, Columns, Form, Norm, ProxPoint, whole_number
from atomlearn.core.norms.base import RatedNorm, lifted_point
from atomlearn.core.norms.ksupport_point import ksupport_point


class KSupport(RatedNorm):
    """The gauge of conv { w : ||w||_2 <= 1, w is zero outside k coordinates (or k groups) }.

    Its polar (dual norm) is the l2 norm of the k largest |z_j|, or of the k groups with the largest
    ||z_g||_2. With k = 1 it is the l1 norm (the group lasso), and with k >= the number of
    coordinates the l2 norm. ``value`` is [A] Proposition 2.1, and ``prox_squared`` is [A] Algorithm
    1 with step = 1 / beta. With k = B, the squared form is the problem of [T], whose feature
    scaling d is ``scaling``.

    Parameters
    ----------
    k : int >= 1, optional
        Number of coordinates, or groups, of an atom. A k larger than their total has the same
        effect as the total. None: cross-validated estimators choose k together with alpha; other
        estimators and functions need a k.
    groups : None, list of index lists, or label array
        Disjoint groups of columns; a column in no list, or with a negative label, is a
        singleton group. The norm is then the k-support norm of the vector of group l2 norms. Do not
        change the lists in place, but set the parameter again.

    References
    ----------
    Argyriou, Foygel, Srebro (2012), Sparse prediction with the k-support norm, NeurIPS 25,
    arXiv:1204.5043. McDonald, Pontil, Stamos (2016), New perspectives on k-support and cluster
    norms, JMLR 17(155).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.KSupport(k=2).value(np.array([3.0, 0.0, -4.0]))
    5.0
    >>> norms.KSupport(k=1).value(np.array([3.0, 0.0, -4.0]))
    7.0
    """

    def __init__(self, k: int | None = None, groups: Any = None) -> None:
        """Store the parameters of the class; ``on`` checks them for a data set."""
        self.k: Any = k  # Any: ``required_k`` refuses None
        self.groups = groups

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> KSupport:
        """Return the same norm with its groups checked and resolved for n_features.

        ``shape`` is used only by norms of matrices.
        """
        whole_number("KSupport", "k", required_k(self))
        return self if self.groups is None else KSupport(self.k, self.partition(n_features))

    def candidates(self, n_samples: int, n_features: int) -> list[Norm]:
        """Return the norms from which cross-validation chooses: this norm only, if k is given.

        Otherwise they have k = 1, 2, 3, 5, 8, ... up to the smaller of two numbers: ``n_samples``,
        and the number of groups (without groups, ``n_features``).
        """
        if self.k is not None:
            return [self]
        groups = self._groups(n_features)
        size = n_features if groups is None else groups.n_groups
        return [self.replaced(k=k) for k in k_grid(min(n_samples, size))]

    def value(self, w: Array) -> float:
        """Return gauge(w) = sqrt(min_d sum_g ||w_g||^2 / d_g) over 0 <= d <= 1, sum d <= k.

        Without groups, each w_j is a group. The expected time is O(n_features).
        """
        w = to_float64(w)
        if w.size == 0:
            return 0.0
        magnitudes = w if self.groups is None else self.partition(w.size).norms(w)
        scale = power_of_two(magnitudes)
        k = self._support_size(magnitudes.size)
        return scale * float(_kernels.ksupport_gauge(magnitudes / scale, k))

    def _support_size(self, n_ratings: int) -> int:
        """Return k, but at most ``n_ratings``, the number of columns or groups."""
        k: int = required_k(self)
        return min(k, max(1, n_ratings))

    usual_form = "squared"

    def scaling(self, w: Array) -> Array | None:
        """Return the scaling d (n_features,) of w, d_j = clip(t |w_j|, 0, 1) for some t.

        It has the smallest sum_j w_j^2 / d_j over 0 <= d <= 1 with sum d <= k. If at most k entries
        of w are not 0, d_j is 1 for them. None with groups.
        """
        if self.groups is not None:
            return None
        k = self._support_size(w.size)
        if np.count_nonzero(w) <= k:
            return np.asarray(w != 0, dtype=np.float64)
        return np.asarray(np.clip(np.abs(w) / fair_share(w, k), 0.0, 1.0))

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at v (n,), of columns or of group norms.

        The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus
        (amount / 2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on
        gauge(x) <= amount. The gauge is this norm.
        """
        if self.groups is None or v.size == 0:
            return ksupport_point(v, self._support_size(v.size), amount, form)
        partition = self.partition(v.size)
        k = self._support_size(partition.n_groups)
        return lifted_point(v, partition, lambda norms: ksupport_point(norms, k, amount, form))

    def restrict(self, columns: Columns, n_features: int) -> KSupport:
        """Return the norm on ``columns``, with the same k and the groups restricted to them.

        n_features : the number of all columns.
        """
        if self.groups is None:
            return KSupport(self.k)
        return KSupport(self.k, self.partition(n_features).restrict(columns)[0])

    @property
    def scores_for_ratings(self) -> Literal["all", "large"]:
        """Which scores ratings need: the large ones without groups, all with groups.

        Without groups, the polar (dual norm of the scores) needs only the k largest scores.
        """
        return "large" if self.groups is None else "all"

    def thresholds(self, w: Array, columns: Columns, n_features: int) -> float:
        """Return t for which w_j = 0 stays optimal while |z_j| <= multiplier * t; see ``Norm``.

        The result is t = (T / (k - q)) / gauge(w). Here T is the sum of |w_j| over 0 < d_j < 1, and
        q the number of d_j = 1, for the vector d of ``scaling``. t is 0 if at most k coefficients
        are not zero. With groups t is 0, because a zero coefficient of an active group is not
        optimal for any z_j != 0.

        w : the nonzero coefficients. The result is the same for all ``columns``, the zeros of w.
        n_features : the number of all columns.
        """
        w = to_float64(w)
        k = self._support_size(n_features)
        if self.groups is not None or np.count_nonzero(w) <= k:
            return 0.0
        return fair_share(w, k) / self.value(w)


def k_grid(largest: int) -> list[int]:
    """Return the grid 1, 2, 3, 5, 8, ..., ``largest``, from which cross-validation chooses k.

    It is geometric, with ratios of at most 1.6, and rounded to whole numbers.
    """
    count = 1 + math.ceil(math.log(max(largest, 1)) / math.log(1.6))
    grid: list[int] = (
        np.unique(np.rint(np.geomspace(1, max(largest, 1), count))).astype(int).tolist()
    )
    return grid


def required_k(norm: Any) -> Any:
    """Return the k of a norm; raise ValueError if it is None."""
    if norm.k is None:
        raise ValueError(
            f"{norm!r} has no k: a cross-validated estimator, such as AtomicRegressorCV, chooses "
            f"one; anything else needs it, for example {type(norm).__name__}(k=10)"
        )
    return norm.k


def fair_share(w: Array, k: int) -> float:
    """Return 1 / t for d_j = clip(t |w_j|, 0, 1) with sum d = k, at w (n,).

    w must have more than k nonzero entries. With q the number of d_j = 1, it is the sum of the
    other |w_j|, divided by k - q.
    """
    ordered = -np.sort(-np.abs(w))
    tails = np.cumsum(ordered[::-1])[::-1]
    # tails[q] is the sum of all magnitudes but the q largest; k - q is the sum of their d.
    remaining = k - np.arange(k)
    # Entry q + 1 in decreasing order has d = 1 if it is at least tails[q] / (k - q).
    q = min(int(np.count_nonzero(ordered[:k] * remaining >= tails[:k])), k - 1)
    return float(tails[q] / (k - q))
