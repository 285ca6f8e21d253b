"""Base classes of vector norms: with a proximal map, with an inner norm, or over ranked groups.

A norm is called a gauge, as it may be infinite for some w, or differ at w and -w. The scores
z = X'v are the inner products of the columns with the negative gradient v of the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from atomlearn._support import l2_norm, to_float64
from atomlearn.core.interfaces import (
    Array,
    Columns,
    Form,
    Lift,
    Norm,
    ProxJacobian,
    ProxPoint,
    Scores,
)
from atomlearn.core.interfaces.forwarding import forward
from atomlearn.core.interfaces.proximal import MAX_DENSE_FACTORS, side_by_side
from atomlearn.core.norms.forms import three_forms
from atomlearn.core.norms.names import named_groups
from atomlearn.core.norms.parameters import Parameters
from atomlearn.core.norms.partition import Partition


class VectorNorm(Parameters, Norm):
    """A gauge of vectors with three proximal maps, of which a subclass implements one.

    They are the proximal map of step * gauge (``_penalized``), the proximal map of
    (step / 2) * gauge^2, and the projection onto the ball gauge <= radius. The last two are derived
    from the first one by root finding, unless a subclass overrides ``_point``.
    """

    absolute = True

    def _penalized(self, v: Array, step: float) -> ProxPoint:
        """Return argmin_x 1/2 ||x - v||^2 + step * gauge(x) for v (n,) and a finite step >= 0.

        The gauge is this norm; v is float64.
        """
        raise NotImplementedError

    def _last_step(self, v: Array) -> float:
        """Return the smallest step at which the map ``_penalized`` sends v (n,) to 0.

        It is the polar (dual norm) of v: the maximum of <a, v> over the atoms a, the extreme points
        of the unit ball.
        """
        return self.polar(v)  # type: ignore[arg-type]

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at v (n,); subclasses override it with closed forms.

        The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus
        (amount / 2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on
        gauge(x) <= amount. The gauge is this norm.
        """
        return three_forms(v, amount, form, self._penalized, self._last_step)

    def prox_point(self, w: NDArray[Any], amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at w (n,): the point x, gauge(x) and the Jacobian.

        The point x minimizes 1/2 ||x - w||^2 plus amount * gauge(x) for "penalized", or plus
        (amount / 2) gauge(x)^2 for "squared"; for "constrained" it is the projection of w on
        gauge(x) <= amount. The Jacobian is a function, called only when it is needed.
        """
        value = float(amount)
        if not (math.isfinite(value) and value >= 0):
            name = "radius" if form == "constrained" else "step"
            raise ValueError(
                f"{type(self).__name__}: {name} must be finite and at least 0, got {amount!r}; "
                "check the step size or level that produced it"
            )
        return self._point(to_float64(w), value, form)

    def prox(self, w: NDArray[Any], step: float) -> NDArray[Any]:
        """Return argmin_x 1/2 ||x - w||^2 + step * gauge(x), (n,), in the dtype of w.

        The gauge is this norm; step >= 0.
        """
        return self._mapped(w, step, "penalized")

    def prox_squared(self, w: NDArray[Any], step: float) -> NDArray[Any]:
        """Return argmin_x 1/2 ||x - w||^2 + (step / 2) * gauge(x)^2, in the dtype of w.

        For ``KSupport`` this is [A] Algorithm 1 with step = 1 / beta. For ``Groups`` it is [T]
        Algorithm 3, the Moreau projection S_tau(u, v), with step = s = 1 / tau. The gauge is this
        norm; step >= 0.
        """
        return self._mapped(w, step, "squared")

    def project(self, w: NDArray[Any], radius: float) -> NDArray[Any]:
        """Return the point of { x : gauge(x) <= radius } nearest to w, in the dtype of w.

        The gauge is this norm; radius >= 0.
        """
        return self._mapped(w, radius, "constrained")

    def _mapped(self, w: NDArray[Any], amount: float, form: Form) -> NDArray[Any]:
        """Return the proximal point of ``form`` at w (n,), in float32 if w is float32.

        amount : the step, or the radius of the form "constrained".
        """
        point = self.prox_point(w, amount, form).point
        return point.astype(np.float32) if np.asarray(w).dtype == np.float32 else point


def checked_norm(owner: str, norm: Any) -> Norm:
    """Return ``norm``; raise TypeError if it is not a Norm. ``owner`` names the outer norm."""
    if not isinstance(norm, Norm):
        raise TypeError(
            f"{owner}: norm must be a norm object such as norms.KSupport(k=10), got "
            f"{type(norm).__name__}"
        )
    return norm


def refuse_free(owner: str, norm: Norm, n_features: int, remedy: str) -> None:
    """Raise ValueError if one of the ``n_features`` columns is not penalized by ``norm``.

    owner : the name of the outer norm, which begins the message; remedy : the end of the message.
    """
    # ``without`` returns the columns that the norm does not penalize, in addition to those listed.
    no_columns = np.zeros(0, dtype=np.int64)
    free = norm.without(no_columns, n_features)[0]
    if free.size:
        raise ValueError(f"{owner}: a column of weight 0 is free{remedy}")


class Wrapper(VectorNorm):
    """Base class of a norm around an inner norm, ``norm``, whose methods it uses by default."""

    norm: Norm

    def without(self, columns: Columns, n_features: int) -> tuple[Columns, Norm]:
        """Return the unpenalized columns, and this norm around the inner norm without them.

        columns : columns that are unpenalized for another reason; the result includes them.
        n_features : the number of all columns.
        """
        free, inner = self.norm.without(columns, n_features)
        return free, self._around(inner)

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """Return this norm with its inner norm checked and resolved for ``n_features`` columns.

        shape : of the matrix whose entries are the columns, if there is one.
        """
        return self._around(checked_norm(type(self).__name__, self.norm).on(n_features, shape))

    def with_names(self, names: Sequence[str]) -> Norm:
        """Return this norm with column names in the inner norm replaced by column indices.

        names : the names of all columns, in order.
        """
        return self._around(self.norm.with_names(names))

    def candidates(self, n_samples: int, n_features: int) -> list[Norm]:
        """Return this norm around each of the inner norm's candidates for model selection.

        They may depend on ``n_samples`` and ``n_features``, the shape of X.
        """
        return [self._around(inner) for inner in self.norm.candidates(n_samples, n_features)]

    def restrict(self, columns: Columns, n_features: int) -> Norm | None:
        """Return this norm around the inner norm's restriction to ``columns``.

        None if the inner norm has no restriction. n_features : the number of all columns.
        """
        inner = self.norm.restrict(columns, n_features)
        return None if inner is None else self._around(inner)

    def lift(self, n_features: int) -> Lift | None:
        """Return the lift of this norm: that of the inner norm, with this norm around it.

        A lift writes a norm as inf { simpler norm(u) : L u = w }, for a matrix L and a vector u
        with more entries than w. None if the inner norm has no lift. n_features : the number of all
        columns.
        """
        inner = self.norm.lift(n_features)
        return None if inner is None else replace(inner, norm=self._around(inner.norm))

    def _around(self, inner: Norm) -> Norm:
        """Return a copy of this norm whose inner norm is ``inner``."""
        return self if inner is self.norm else self.replaced(norm=inner)


forward(
    Wrapper,
    "norm",
    "absolute",
    "proximal",
    "thresholds",
    "inside",
    "bounds_coefficients",
)


class RatedNorm(VectorNorm):
    """A norm whose polar (dual) norm is the l2 norm of the k largest ratings.

    The rating is |z_j| for a column j, or ||z_g||_2 for a group g, divided by its weight if the
    norm has weights. z (n_features,) are the scores. If ``groups`` is None, columns are rated.
    Before a problem is built, ``on`` replaces ``groups`` by a ``Partition``.
    """

    groups: Any = None

    def partition(self, n_features: int) -> Partition:
        """Return the groups of n_features features; each feature is in exactly one group."""
        return Partition.of(self.groups, n_features, type(self).__name__)

    def with_names(self, names: Sequence[str]) -> Self:
        """Return the same norm with names and patterns of columns replaced by indices.

        names : the names of all columns, in order.
        """
        groups = named_groups(self.groups, names, type(self).__name__)
        return self if groups is self.groups else self.replaced(groups=groups)

    def _groups(self, n_features: int) -> Partition | None:
        """Return the groups that are rated, or None if single columns are rated.

        n_features : the number of all columns.
        """
        return None if self.groups is None else self.partition(n_features)

    def _support_size(self, n_ratings: int) -> int:
        """Return k, the number of nonzero columns or groups of an atom.

        An atom is an extreme point of the unit ball. n_ratings : the number of columns or groups,
        which k may not exceed.
        """
        return 1

    def ratings(self, scores: Scores) -> Scores:
        """Return the ratings of all columns or groups, from the scores z (n_features,).

        They are |z_j| of every column, or ||z_g||_2 of every group; subclasses divide by weights.
        """
        groups = self._groups(scores.n_columns)
        return scores if groups is None else groups.ratings_of_scores(scores)

    def polar(self, scores: Scores) -> float:
        """Return the polar (dual norm of the scores): the l2 norm of the k largest ratings."""
        ratings = self.ratings(scores)
        return l2_norm(ratings.top(self._support_size(ratings.n_columns))[1])

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the columns of the largest ratings: at least k ratings, about ``count`` columns.

        Groups are returned whole, and groups of rating 0 only as far as k needs them. With k = B
        this is the worst-case analysis of [T] Algorithm 2; it is also step S2 of [L] Algorithm 1.
        scores : z (n_features,).
        """
        ratings = self.ratings(scores)
        k = self._support_size(ratings.n_columns)
        order, values = ratings.top(max(k, count))
        # Ratings of 0 are left out, unless fewer than k are positive: an atom has k columns or
        # groups.
        order = order[: max(k, np.count_nonzero(values))]
        groups = self._groups(scores.n_columns)
        if groups is None:
            return order
        # The number of groups that together have at least ``count`` columns.
        n_groups = int(np.searchsorted(np.cumsum(groups.sizes[order]), count)) + 1
        return groups.members(order[: max(k, n_groups)])

    def reference(self, scores: Scores) -> float:
        """Return the k-th largest rating, the smallest rating of a column of the best atom.

        The best atom is the vector a of norm 1 with the largest <a, z>, for the scores z
        (n_features,). The result is infinite if there are no columns.
        """
        ratings = self.ratings(scores)
        return float(
            np.abs(ratings.top(self._support_size(ratings.n_columns))[1]).min(initial=np.inf)
        )

    def rated(self, scores: Scores, bound: float) -> Columns:
        """Return the columns whose rating, or whose group's rating, is at least ``bound``.

        scores : z (n_features,).
        """
        numbers = self.ratings(scores).above(bound)[0]
        groups = self._groups(scores.n_columns)
        return numbers if groups is None else groups.members(numbers)


def lifted_point(v: Array, partition: Partition, inner: Callable[[Array], ProxPoint]) -> ProxPoint:
    """Return the proximal map of w -> phi(||w_1||_2, ..., ||w_G||_2) at v, for G disjoint groups.

    v : (n,), partition : its groups. inner : the proximal map of phi, from the G group norms to a
    point. Each group of the result has the direction of v_g, and the length that ``inner`` gives.
    """
    norms = partition.norms(v)
    point = inner(norms)
    ratio = np.divide(point.point, norms, out=np.zeros_like(norms), where=norms > 0)
    return ProxPoint(
        v * ratio[partition.labels],
        point.gauge,
        lambda: _lift_jacobian(point.jacobian(), v, norms, ratio, partition),
    )


def _lift_jacobian(
    inner: ProxJacobian, v: Array, norms: Array, ratio: Array, partition: Partition
) -> ProxJacobian:
    """Return the Jacobian of ``lifted_point`` at v (n,): a diagonal plus a low-rank term.

    It is diag(r_g) + sum_g (delta_g - r_g) u_g u_g' + (U F) C (U F)'. Here u_g = v_g / ||v_g|| is
    the direction of group g of ``partition``, and U has the columns u_g. r_g = ``ratio[g]`` is the
    shrinkage factor of the group. ``inner``, the Jacobian of the map of the group norms, is
    diag(delta) + F C F'. ``norms`` are the group norms of v. The factors of the result are one
    column u_g for each group with delta_g != r_g, followed by U F. They are a sparse CSC array if a
    dense one would be large.
    """
    labels = partition.labels
    delta = inner.diagonal
    factors_of_inner = inner.dense_factors()
    # In a group of one column, u_g u_g' is 1, so that its block is delta_g. At v_g = 0 there is no
    # direction u_g. The block is then a multiple of I, with the diagonal entry of ``inner`` for g.
    is_diagonal = (partition.sizes == 1) | (norms == 0)
    diagonal = np.where(is_diagonal, delta, ratio)
    diagonal += np.where(norms == 0, factors_of_inner**2 @ inner.coefficients, 0.0)
    # The groups with a term u_g u_g': one factor for each of them.
    coupled = np.flatnonzero(~is_diagonal & (delta != ratio))
    length = norms[labels]
    direction = np.divide(v, length, out=np.zeros_like(v), where=length > 0)
    # The number of the factor of each group (-1: none); the row and the factor of each entry.
    factor_of_group = np.full(partition.n_groups, -1, dtype=np.int64)
    factor_of_group[coupled] = np.arange(coupled.size)
    rows = np.flatnonzero(factor_of_group[labels] >= 0)
    indices = (rows, factor_of_group[labels[rows]])
    shape = (v.size, coupled.size)
    if v.size * coupled.size <= MAX_DENSE_FACTORS:
        factors: Any = np.zeros(shape)
        factors[indices] = direction[rows]
    else:
        factors = sparse.csc_array((direction[rows], indices), shape=shape)
    # U F: each row of F, which belongs to a group, times the direction u_g of its features.
    mapped_factors = direction[:, None] * factors_of_inner[labels]
    coefficients = np.concatenate([(delta - ratio)[coupled], inner.coefficients])
    factors = side_by_side([factors, mapped_factors])
    return ProxJacobian(diagonal[labels], factors, coefficients)
