"""L1: gauge(w) = sum_j weight_j |w_j| within bounds; its atoms are signed unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atomlearn.core.interfaces import Array, Columns, ProxPoint, Scores
from atomlearn.core.interfaces.excess import Excess
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.norms.forms import soft_point
from atomlearn.core.norms.grouped import RatedNorm
from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.partition import Partition
from atomlearn.core.norms.sides import Sides, by_name
from atomlearn.core.norms.vectors import to_float64


class L1(RatedNorm):
    """gauge(w) = sum_j weight_j |w_j| for lower <= w <= upper; without them, ||w||_1.

    The polar of the plain norm is max_j |z_j|, of weights max_j |z_j| / weight_j. The proximal
    maps are soft thresholds, found in O(n) expected time, and cut at the bounds.

    Parameters
    ----------
    weights : float, array (n_features,), mapping of names, or None
        A factor a column: 0 leaves it unpenalized (as ``solve(unpenalized=)`` does), inf leaves it
        out. A mapping names those that are not 1.
    lower, upper : float, array (n_features,), mapping of names, or None
        Bounds on coefficients, lower <= 0 <= upper; 0 fixes a sign. Free columns have none.

    Notes
    -----
    With bounds that are neither 0 nor infinite R is no function of a gauge, but its conjugate is
    still one minimum over a number, and the proof is exact:

        sup over l <= w <= u of <z, w> - h(gauge(w)) = min over t >= t_0 of
            h*(t) + sum_j u_j max(z_j - t p_j, 0) + sum_j (-l_j) max(-z_j - t p_j, 0),

    the sums over bounded sides, t_0 = max z_j / p_j over the others (``interfaces.Excess``): a
    coefficient at its bound may have a score beyond its weight.

    References
    ----------
    R. Tibshirani 1996, Regression shrinkage and selection via the lasso.
    H. Zou 2006, doi:10.1198/016214506000000735 (the adaptive lasso: weights from a first fit).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norms.L1().value(np.array([3.0, 0.0, -4.0]))
    7.0
    >>> norms.L1(weights=[1.0, 2.0, np.inf], lower=0.0).value(np.array([3.0, 1.0, 0.0]))
    5.0
    """

    def __init__(self, weights: Any = None, lower: Any = None, upper: Any = None) -> None:
        self.weights = weights
        self.lower = lower
        self.upper = upper

    def __repr__(self) -> str:
        return f"{type(self).__name__}()" if self._plain else super().__repr__()

    def check(self, n_features: int) -> None:
        """Raise where weights or bounds do not fit the features."""
        self._sides(n_features)

    def on(self, n_features: int) -> L1:
        """The same norm with one number a column."""
        sides = self._sides(n_features)
        return self if sides is None or sides is self.weights else L1(sides)

    def with_names(self, names: Sequence[str]) -> L1:
        """Return the same norm with numbers by name replaced by one a column."""
        return L1(
            by_name(self.weights, names, 1.0, "weights"),
            by_name(self.lower, names, -np.inf, "lower"),
            by_name(self.upper, names, np.inf, "upper"),
        )

    @property
    def absolute(self) -> bool:
        """True without bounds."""
        if self._read is not None:
            return self._read.symmetric
        return self.lower is None and self.upper is None

    def value(self, w: Array) -> float:
        """sum_j weight_j |w_j|, or infinity outside the bounds"""
        w = to_float64(w)
        sides = self._sides(w.size)
        return float(np.abs(w).sum()) if sides is None else sides.value(w)

    def excess(self, scores: Scores) -> Excess | None:
        """What the bounded sides add to the conjugate."""
        sides = None if self.absolute else self._sides(scores.n_columns)
        return None if sides is None else sides.excess(scores.full())

    def _ratings(self, scores: Scores) -> Scores:
        """|z_j| / weight_j, over the signs that w_j can have."""
        sides = self._sides(scores.n_columns)
        return scores if sides is None else ArrayScores(sides.ratios(scores.full()))

    def free(self, n_features: int) -> Columns:
        """The columns of weight 0."""
        sides = None if self.weights is None else self._sides(n_features)
        return super().free(n_features) if sides is None else np.flatnonzero(sides.price == 0)

    def without(self, columns: Columns, n_features: int) -> L1:
        """The same norm with an infinite weight for these columns."""
        sides = self._sides(n_features)
        if sides is None:
            return self
        price = sides.price.copy()
        price[columns] = np.inf
        return L1(sides._replace(price=price).settled())

    def adapted(self, w: Array, power: float) -> L1:
        """The same norm with weights divided by |w_j|^power."""
        sides = self._sides(w.size) or Sides.read(None, None, None, w.size)
        sizes = np.abs(to_float64(w)) ** power
        price = np.divide(sides.price, sizes, out=np.full(w.size, np.inf), where=sizes > 0)
        # What is free stays free: its weight was 0, or it is left out here and fitted elsewhere.
        return L1(sides._replace(price=np.where(sides.price == 0, 0.0, price)).settled())

    def times(self, factor: float) -> L1 | None:
        """The same norm with its weights multiplied, once they are one a column."""
        sides = self._read
        return None if sides is None else L1(sides._replace(price=factor * sides.price))

    def _penalized(self, v: Array, step: float) -> ProxPoint:
        sides = self._sides(v.size)
        return soft_point(v, step) if sides is None else sides.point(v, step)

    def _last_step(self, v: Array) -> float:
        sides = self._sides(v.size)
        return float(np.abs(v).max(initial=0.0)) if sides is None else sides.last_step(v)

    def restrict(self, columns: Columns, n_features: int) -> L1:
        """The same norm on these columns: l1 does not mix coordinates."""
        sides = self._sides(n_features)
        return self if sides is None else L1(sides.take(columns))

    def as_groups(self, n_features: int) -> Groups | None:
        """Groups of one column; None with bounds, or columns left out."""
        weights = None if self._plain else self.l1_weights(n_features)
        if weights is None and not self._plain:
            return None
        return Groups(Partition(np.arange(n_features), n_features, n_features), weights)

    def l1_weights(self, n_features: int, nonnegative: bool = False) -> Array | None:
        """The weights, where all are finite and there are no bounds, or exactly those at 0."""
        sides = self._sides(n_features)
        if sides is None:
            return None if nonnegative else np.ones(n_features)
        at_zero = bool(((sides.lower == 0) & np.isposinf(sides.upper)).all())
        usable = (np.isfinite(sides.price) & (sides.price > 0)).all()
        return sides.price if usable and (at_zero if nonnegative else sides.symmetric) else None

    @property
    def rates_columns(self) -> bool:
        """True without bounds, at which scores may be beyond those of all others."""
        return self.absolute

    @property
    def asks_large(self) -> bool:
        """True without weights: the polar is the largest magnitude."""
        return self._plain

    def thresholds(self, w: Array, columns: Columns, n_features: int) -> Array | float:
        """The weights of these columns; 0 with bounds, where multipliers do not tell."""
        sides = self._sides(n_features)
        if sides is None:
            return 1.0
        return sides.price[columns] if sides.symmetric else 0.0

    @property
    def _plain(self) -> bool:
        return self.weights is None and self.lower is None and self.upper is None

    @property
    def _read(self) -> Sides | None:
        """Weights and bounds once they are read for so many features; None before."""
        return self.weights if isinstance(self.weights, Sides) else None

    def _sides(self, n_features: int) -> Sides | None:
        """Return weights and bounds as one number a column; None for the plain norm."""
        if self._plain:
            return None
        if self._read is not None:
            return self._read.fitting(n_features)
        return Sides.read(self.weights, self.lower, self.upper, n_features)
