"""Norms that wrap an inner norm: Scaled and Nonnegative, and the positive part of scores."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from atomlearn._support import positive, to_float64
from atomlearn.core.interfaces import (
    Array,
    Atom,
    Columns,
    Form,
    GroupWeights,
    Norm,
    ProxPoint,
    Scores,
    Term,
)
from atomlearn.core.interfaces.certificate import Excess
from atomlearn.core.interfaces.forwarding import forward
from atomlearn.core.interfaces.norm import Ratings
from atomlearn.core.norms.base import Wrapper, refuse_free


class Scaled(Wrapper):
    """gauge(w) = factor * norm(w); its polar (dual) norm is norm°(z) / factor.

    The atoms are those of ``norm`` divided by the factor.

    Parameters
    ----------
    norm : Norm
        The inner norm.
    factor : float > 0
        The number by which it is multiplied.

    References
    ----------
    [V] section 2.1, weights of atomic sets.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.Scaled(norms.L1(), 2.0).value(np.array([3.0, 0.0, -4.0]))
    14.0
    """

    def __init__(self, norm: Norm, factor: float) -> None:
        """Store the parameters of the class; ``on`` checks them for a data set."""
        self.norm = norm
        self.factor = factor

    def terms(self) -> list[Term]:
        """Return the terms of the inner norm, with their factors multiplied by ``self.factor``.

        A norm whose atoms are a union of sets has one term, a scaled norm, for each set; other
        norms have one term.
        """
        terms = self.norm.terms()
        return [replace(term, factor=term.factor * self.factor) for term in terms]

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """Return factor times the inner norm, with the parameters of both checked.

        ``n_features`` is the number of columns; ``shape`` is used only by norms of matrices.
        """
        positive("Scaled: factor", self.factor)
        return super().on(n_features, shape)

    def as_groups(self, n_features: int, nonnegative: bool = False) -> GroupWeights | None:
        """Return the groups of the inner norm, with their weights multiplied by the factor.

        None if the inner norm is no group norm. nonnegative : also return the groups of a norm that
        is a group norm for w >= 0 and infinite elsewhere. n_features : the number of all columns.
        """
        groups = self.norm.as_groups(n_features, nonnegative)
        return None if groups is None else replace(groups, weights=self.factor * groups.weights)

    def value(self, w: Array) -> float:
        """Return factor * norm(w)."""
        return self.factor * self.norm.value(w)

    def polar(self, scores: Scores) -> float:
        """Return norm°(z) / factor, the polar (dual norm) of the scores z."""
        return self.norm.polar(scores) / self.factor

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the best columns of the inner norm, about ``count``: scaling changes no order.

        scores : z (n_features,).
        """
        return self.norm.best_columns(scores, count)

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at v (n,): the inner norm's for a scaled amount.

        The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus
        (amount / 2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on
        gauge(x) <= amount. The gauge is this norm. The amount is multiplied by factor or factor^2,
        or divided by factor.
        """
        power = {"penalized": 1, "squared": 2, "constrained": -1}[form]
        inner = self.norm.prox_point(v, amount * self.factor**power, form)
        return ProxPoint(inner.point, self.factor * inner.gauge, inner.jacobian)

    def polar_bounds(self, scores: Scores, thorough: bool = False) -> tuple[float, float]:
        """Return a lower and an upper bound on the polar (dual norm) of the scores z.

        They are the bounds of the inner norm, divided by the factor. thorough : whether to spend
        more time on the upper bound.
        """
        lower, upper = self.norm.polar_bounds(scores, thorough)
        return lower / self.factor, upper / self.factor

    def best_atom(self, scores: Scores) -> Atom:
        """Return the best atom (vector a of norm 1 with the largest <a, z>) for the scores z.

        It is the best atom of the inner norm, divided by the factor.
        """
        atom = self.norm.best_atom(scores)
        return Atom(atom.columns, atom.values / self.factor)

    def thresholds(self, w: Array, columns: Columns, n_features: int) -> Array | float:
        """Return the thresholds t_j of the zero coefficients ``columns``: the inner norm's, scaled.

        w_j = 0 stays optimal while |z_j| <= multiplier * t_j, for the scores z; see
        ``Norm.thresholds``. ``w`` are the nonzero coefficients. n_features : the number of all
        columns.
        """
        return self.factor * self.norm.thresholds(w, columns, n_features)

    def excess(self, scores: Scores) -> Excess | None:
        """Return the term that the inner norm's constraints add to the conjugate of the penalty.

        In this term, the weights of the inner norm are multiplied by the factor. None if the inner
        norm has no constraints. scores : z (n_features,).
        """
        inner = self.norm.excess(scores)
        return None if inner is None else inner.repriced(self.factor)


forward(Scaled, "norm", "matrix_shape", "solver", *vars(Ratings))


class Nonnegative(Wrapper):
    """gauge(w) = norm(w) for w >= 0, infinite elsewhere; its polar (dual) is norm°(max(z, 0)).

    ``norm`` must depend only on |w| and increase with it. Then setting negative coordinates to
    zero never increases the norm, so that the polar and the three proximal maps are those of
    ``norm`` at the positive part of the argument.

    Parameters
    ----------
    norm : Norm
        l1, l2, elastic net, k-support, groups, or a scaled one of these.

    References
    ----------
    [V] section 2.1, cones of atoms.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.Nonnegative(norms.L1()).value(np.array([3.0, 0.0, -4.0]))
    inf
    """

    def __init__(self, norm: Norm) -> None:
        """Store the inner norm; ``on`` checks it for the columns of a data set."""
        self.norm = norm

    absolute = False

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """Return the same norm with the inner norm checked for n_features columns.

        Raises TypeError unless the inner norm depends only on abs(w), and ValueError if it does not
        penalize a column. ``shape`` is used only by norms of matrices.
        """
        if not self.norm.absolute:
            raise TypeError(
                "Nonnegative needs a norm of vectors that depends on |w| only and grows with it, "
                f"got {self.norm!r}; use l1, l2, groups or k-support"
            )
        remedy = ", and of either sign; give it a small weight instead"
        refuse_free("Nonnegative", self.norm, n_features, remedy)
        return super().on(n_features, shape)

    def value(self, w: Array) -> float:
        """Return norm(w), or infinity if some w_j < 0."""
        w = to_float64(w)
        return math.inf if (w < 0).any() else self.norm.value(w)

    def polar(self, scores: Scores) -> float:
        """Return norm°(max(z, 0)), the polar (dual norm) of the positive part of the scores z."""
        return self.norm.polar(PositiveScores(scores))

    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return the best columns of the inner norm for max(z, 0), about ``count``.

        Only columns with positive scores are returned, as all other coefficients stay 0.
        """
        positive = PositiveScores(scores)
        columns = self.norm.best_columns(positive, count)
        return columns[positive.at(columns) > 0]

    def _point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of ``form`` at v (n,): the inner norm's at max(v, 0).

        The result x minimizes 1/2 ||x - v||^2 plus amount * gauge(x) for "penalized", or plus
        (amount / 2) gauge(x)^2 for "squared"; for "constrained" it is the projection of v on
        gauge(x) <= amount. The gauge is this norm. The Jacobian is 0 where v_j <= 0.
        """
        inner = self.norm.prox_point(np.maximum(v, 0.0), amount, form)
        return ProxPoint(inner.point, inner.gauge, lambda: inner.jacobian().masked(v > 0))

    def best_atom(self, scores: Scores) -> Atom:
        """Return the best atom (vector a of norm 1 with the largest <a, z>) for the scores z.

        It is the best atom of the inner norm for max(z, 0), without its zeros.
        """
        atom = self.norm.best_atom(PositiveScores(scores))
        is_positive = atom.values > 0
        return Atom(atom.columns[is_positive], atom.values[is_positive])

    def as_groups(self, n_features: int, nonnegative: bool = False) -> GroupWeights | None:
        """Return the groups of the inner norm if ``nonnegative``, else None.

        Without ``nonnegative``, groups are requested only for norms that are finite for all w, so
        that the result is None. n_features : the number of all columns.
        """
        return self.norm.as_groups(n_features) if nonnegative else None


class PositiveScores(Scores):
    """The positive part max(z, 0) of scores z that can be searched only by magnitude.

    ``top`` requests increasing numbers of the largest |z_j| until enough of them are positive.
    """

    def __init__(self, base: Scores) -> None:
        """Store ``base``, the scores z."""
        self._base = base
        self.n_columns = self._base.n_columns

    def top(self, count: int) -> tuple[Columns, Array]:
        """Return the ``count`` largest positive scores and their columns, or all if fewer.

        The base gives scores by magnitude only, so that an increasing number of them is requested.
        """
        # About half of the scores may be negative.
        enlarged = 2 * count + 16
        while True:
            columns, values = self._base.top(enlarged)
            positive = np.flatnonzero(values > 0)[:count]
            # After the first zero, or after the last column, no positive value remains.
            if positive.size == count or values.size < enlarged or values[-1] == 0:
                return columns[positive], values[positive]
            enlarged = 8 * enlarged

    def at(self, columns: Columns) -> Array:
        """Return max(z_j, 0) of these columns."""
        return np.maximum(self._base.at(columns), 0.0)

    def full(self) -> Array:
        """Return max(z_j, 0) of all columns, (n_columns,)."""
        return np.maximum(self._base.full(), 0.0)
