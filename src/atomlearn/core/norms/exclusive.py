"""Exclusive: the hull of unit vectors with at most k columns in each group.

The squared form separates over the groups, into k-support norms. The maps of the other forms are
computed from the map of the squared form, with a step that is found by Newton's method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atomlearn import _kernels
from atomlearn._support import l2_norm, power_of_two, to_float64
from atomlearn.core.interfaces import (
    TINY,
    Array,
    Columns,
    Form,
    ProxJacobian,
    ProxPoint,
    Scores,
    whole_number,
)
from atomlearn.core.interfaces.proximal import side_by_side
from atomlearn.core.norms.base import VectorNorm
from atomlearn.core.norms.ksupport_point import ksupport_point
from atomlearn.core.norms.names import named_groups
from atomlearn.core.norms.partition import Partition

#: Maximum number of steps of the root finding of a proximal map.
MAX_STEPS = 100


class Exclusive(VectorNorm):
    """The gauge of conv { w : ||w||_2 <= 1, w has at most k nonzero columns of each group }.

    gauge(w)^2 = sum_g ||w_g||_k^2, where ||.||_k is the k-support norm (see ``KSupport``). The
    columns of a group compete with each other, and not with columns of other groups, so that a few
    of each group are selected. k = 1 is the exclusive lasso, sum_g ||w_g||_1^2. ``Blocks`` of
    ``KSupport`` adds the norms instead of their squares, and selects only some groups.

    The polar (dual norm) of z is the l2 norm of the k largest abs(z_j) of each group. The squared
    form is a separate problem for each group, and the other two forms are found from it.

    Parameters
    ----------
    groups : list of index lists, mapping of names to lists, or label array
        Disjoint groups of columns; a column in no list, or with a negative label, is a
        singleton group. Lists may contain column names or patterns ("chr7_*") if the columns of X
        have names.
    k : int or list of int, default=1
        Columns of each group in an atom; one number, or one for each listed group.

    References
    ----------
    Y. Zhou, R. Jin, S. Hoi 2010, Exclusive lasso for multi-task feature selection, AISTATS.
    Argyriou, Foygel, Srebro (2012), arXiv:1204.5043, for the k-support norm.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.Exclusive([[0, 1], [2, 3]]).value(np.array([1.0, -2.0, 4.0, 0.0]))
    5.0
    >>> norm = norms.Exclusive([[0, 1], [2, 3]])
    >>> norm.best_columns(np.array([1.0, -2.0, 4.0, 3.0]), 1).tolist()
    [2, 1]
    """

    usual_form = "squared"

    def __init__(self, groups: Any, k: Any = 1) -> None:
        """Store the parameters of the class; ``on`` checks them for a data set."""
        self.groups = groups
        self.k = k

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Exclusive:
        """Return the same norm with its groups checked, and one k for each of them.

        ``n_features`` is the number of columns; ``shape`` is used only by norms of matrices.
        """
        partition, ks = self._groups_and_ks(n_features)
        listed = partition.all_listed()
        return self if listed is self.groups else Exclusive(listed, ks)

    def with_names(self, names: Sequence[str]) -> Exclusive:
        """Return the same norm with names and patterns of columns replaced by indices.

        names : the names of all columns, in order.
        """
        groups = named_groups(self.groups, names, "Exclusive")
        return self if groups is self.groups else Exclusive(groups, self.k)

    def value(self, w: Array) -> float:
        """Return sqrt(sum_g ||w_g||_k^2), with the k-support norm of each group of w."""
        w = to_float64(w)
        scale = power_of_two(w)
        gauges = [_kernels.ksupport_gauge(w[g] / scale, k) for g, k in self._groups(w.size)]
        return scale * l2_norm(np.array(gauges))

    def polar(self, scores: Scores) -> float:
        """Return the polar (dual norm of the scores): the l2 norm of the k largest per group."""
        return l2_norm(scores.full()[self.best_columns(scores, 0)])

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the k largest scores of each group, then the next k, about ``count`` columns.

        The result is sorted by decreasing |z_j|; scores of 0 are left out.
        """
        z = scores.full()
        partition, ks = self._groups_and_ks(z.size)
        # Sort by group, and within a group by decreasing |z_j|. ``rank`` is the position of a
        # column within its group.
        order = np.lexsort((-np.abs(z), partition.labels))
        starts = np.cumsum(partition.sizes) - partition.sizes
        rank = np.arange(z.size) - starts[partition.labels[order]]
        # The n_rounds * k largest of each group are about ``count`` columns in all.
        n_rounds = max(1, count // max(int(ks.sum()), 1))
        chosen = order[rank < n_rounds * ks[partition.labels[order]]]
        chosen = chosen[z[chosen] != 0.0]
        ordered: Columns = chosen[np.argsort(-np.abs(z[chosen]), kind="stable")]
        return ordered.astype(np.int64)

    def restrict(self, columns: Columns, n_features: int) -> Exclusive:
        """Return the same norm on ``columns``; each group keeps its k.

        n_features : the number of all columns.
        """
        partition, ks = self._groups_and_ks(n_features)
        restricted, kept_groups = partition.restrict(columns)
        return Exclusive(restricted, ks[kept_groups])

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at v (n,), computed for v / scale against overflow.

        The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus
        (amount / 2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on
        gauge(x) <= amount. The gauge is this norm. The forms "penalized" and "constrained" have the
        same point as the squared form with a step that ``_root`` finds.
        """
        scale = power_of_two(v)
        scaled = v / scale
        groups = self._groups(v.size)
        if form == "squared":
            point = _squared(scaled, groups, amount)
            return ProxPoint(point.point * scale, point.gauge * scale, point.jacobian)
        amount /= scale
        # The point is v itself (no step, or v is in the ball), or 0 (a step beyond the polar, or a
        # radius of 0), or between them.
        gauge = self.value(scaled)
        if (amount == 0.0) if form == "penalized" else (gauge <= amount):
            return ProxPoint(v.copy(), gauge * scale, lambda: ProxJacobian(np.ones(v.size)))
        polar = self.polar(scaled)  # type: ignore[arg-type]
        if (polar <= amount) if form == "penalized" else (amount == 0.0):
            return ProxPoint(np.zeros_like(v), 0.0, lambda: ProxJacobian(np.zeros(v.size)))
        # Let x(t) be the point of the squared form with step t. As polar / (1 + t) <= gauge(x(t))
        # <= gauge / (1 + t), ``least`` and ``largest`` bound the t with gauge(x(t)) = amount. For
        # "penalized" they bound 1 / t, for the t with t * gauge(x(t)) = amount.
        least = max(polar / amount - 1.0, TINY)
        largest = max(gauge / amount - 1.0, least)
        step, point = _root(scaled, groups, amount, form, least, largest)
        return ProxPoint(
            point.point * scale, point.gauge * scale, lambda: _jacobian(scaled, point, step, form)
        )

    def _groups(self, n_features: int) -> list[tuple[Columns, int]]:
        """Return the columns and the k of each group; k is at most the size of the group.

        n_features : the number of all columns.
        """
        partition, ks = self._groups_and_ks(n_features)
        order, starts = partition.order
        return [
            (order[starts[g] : starts[g + 1]], int(min(ks[g], partition.sizes[g])))
            for g in range(partition.n_groups)
        ]

    def _groups_and_ks(self, n_features: int) -> tuple[Partition, Columns]:
        """Return the groups of the features, and the k of each group, (n_groups,).

        Groups that the user did not list have one column and k = 1. n_features : the number of all
        columns.
        """
        partition = Partition.of(self.groups, n_features, "Exclusive")
        if np.ndim(self.k) == 0:
            k = whole_number("Exclusive", "k", self.k)
            return partition, np.full(partition.n_groups, k)
        ks = np.asarray(self.k)
        listed = partition.n_listed
        if ks.shape != (listed,) or ks.dtype.kind not in "iu" or (ks < 1).any():
            raise ValueError(
                f"Exclusive: k must be a whole number >= 1, or one for each of the {listed} listed "
                f"groups, got {self.k!r}"
            )
        ones = np.ones(partition.n_groups - listed, dtype=np.int64)
        return partition, np.concatenate([ks.astype(np.int64), ones])


@dataclass(frozen=True, slots=True)
class SquaredPoint:
    """The result of the proximal map of (step / 2) gauge^2, computed group by group.

    point : (n,). gauge : the norm of the point. groups : the columns of each group, and the
    proximal point of its k-support norm.
    """

    point: Array
    gauge: float
    groups: list[tuple[Columns, ProxPoint]]

    def jacobian(self) -> ProxJacobian:
        """Return the Jacobian of the map, which is block-diagonal: one block for each group."""
        size = self.point.size
        diagonal = np.zeros(size)
        factors: list[Any] = [np.zeros((size, 0))]
        coefficients = [np.zeros(0)]
        for columns, point in self.groups:
            block = point.jacobian().embedded(columns, size)
            diagonal += block.diagonal
            factors.append(block.factors)
            coefficients.append(block.coefficients)
        return ProxJacobian(diagonal, side_by_side(factors), np.concatenate(coefficients))


def _squared(v: Array, groups: list[tuple[Columns, int]], step: float) -> SquaredPoint:
    """Return argmin_x 1/2 ||x - v||^2 + (step / 2) gauge(x)^2, v (n,): a k-support map per group.

    groups : the columns and the k of each group; gauge(x)^2 is the sum of the squared k-support
    norms of the groups.
    """
    x = np.zeros_like(v)
    points = []
    for columns, k in groups:
        point = ksupport_point(v[columns], k, step, "squared")
        x[columns] = point.point
        points.append((columns, point))
    return SquaredPoint(x, l2_norm(np.array([point.gauge for _, point in points])), points)


def _root(
    v: Array,
    groups: list[tuple[Columns, int]],
    amount: float,
    form: Form,
    least: float,
    most: float,
) -> tuple[float, SquaredPoint]:
    """Return the step at which the squared form has the same point as ``form``, and the point.

    ``form`` is "penalized" (step * gauge(x) = amount there) or "constrained" (gauge(x) = amount). v
    and ``groups`` are the arguments of ``_squared``. ``least`` and ``most`` bound the step of
    "constrained", and its inverse for "penalized". A safeguarded Newton method solves for the
    logarithm of the step.
    """
    penalized = form == "penalized"
    low, high = (1.0 / most, 1.0 / least) if penalized else (least, most)
    step = math.sqrt(low) * math.sqrt(high)
    candidate = _squared(v, groups, step)
    for _ in range(MAX_STEPS):
        value = step * candidate.gauge if penalized else candidate.gauge
        residual = value / amount - 1.0
        # The gauge falls with the step, and step * gauge increases.
        if (residual < 0.0) == penalized:
            low = step
        else:
            high = step
        # The root is found up to rounding.
        if abs(residual) <= 4e-16 or high <= low * (1.0 + 4e-16):
            break
        # s is the gradient of gauge^2 / 2 at the point, and J the Jacobian. ``share`` is
        # -d log(gauge) / d log(step) = step s'J s / gauge^2.
        s = (v - candidate.point) / step
        share = step * float(s @ candidate.jacobian().apply(s)) / max(candidate.gauge**2, TINY)
        # The derivative of log(value) with respect to log(step).
        slope = 1.0 - share if penalized else -share
        proposal = step * math.exp(-math.log1p(residual) / slope) if abs(slope) > 1e-3 else math.inf
        # A Newton step out of the bracket is replaced by bisection of the logarithm.
        if not low < proposal < high:
            proposal = math.sqrt(low) * math.sqrt(high)
        if proposal == step:
            break
        step = proposal
        candidate = _squared(v, groups, step)
    return step, candidate


def _jacobian(v: Array, point: SquaredPoint, step: float, form: Form) -> ProxJacobian:
    """Return the Jacobian of the penalized or constrained form, from that of the squared form.

    v, ``point`` and ``step`` are those of the squared form with the same point. This step depends
    on v, and its derivative adds a term of rank one. With n = (v - x) / step and J the Jacobian of
    the squared form, the term is -(J n)(J n)' / n'J n for "constrained", and (J n)(J n)' / (gauge^2
    / step - n'J n) for "penalized".
    """
    inner = point.jacobian()
    normal = (v - point.point) / step
    # n is scaled to length 1, so that nothing overflows: both parts of the term are divided by
    # length^2. ``image`` is J n, and ``curvature`` is n'J n.
    length = l2_norm(normal)
    if not length:
        return inner
    normal = normal / length
    image = inner.apply(normal)
    curvature = float(normal @ image)
    if form == "constrained":
        return (
            inner.plus(image[:, None], np.array([-1.0 / curvature])) if curvature > 0.0 else inner
        )
    difference = (point.gauge / length) ** 2 / step - curvature
    return inner.plus(image[:, None], np.array([1.0 / difference])) if difference > 0.0 else inner
