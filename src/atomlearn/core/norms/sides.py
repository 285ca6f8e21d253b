"""Sides: weights and bounds of single coefficients, as the l1 norm needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns, ProxJacobian, ProxPoint
from atomlearn.core.interfaces.excess import Excess


class Sides(NamedTuple):
    """gauge(w) = sum_j price_j |w_j| for lower <= w <= upper, infinite elsewhere; (n,) each.

    price : in [0, inf]; of infinite price w_j is 0. lower <= 0 <= upper, infinite where there is
    no bound.
    """

    price: Array
    lower: Array
    upper: Array

    @classmethod
    def read(cls, weights: Any, lower: Any, upper: Any, n_features: int) -> Sides:
        """Check and spread the parameters of ``L1`` over so many columns."""
        price = _numbers("weights", weights, 1.0, n_features)
        low = _numbers("lower", lower, -np.inf, n_features)
        high = _numbers("upper", upper, np.inf, n_features)
        if (price < 0).any():
            raise ValueError(
                f"L1: weights must be >= 0 (0: unpenalized, inf: left out), got {price.min()}"
            )
        if (low > 0).any() or (high < 0).any():
            raise ValueError(
                "L1: bounds must hold 0, lower <= 0 <= upper; got lower up to "
                f"{low.max()} and upper down to {high.min()}"
            )
        bounded = np.isfinite(low) | np.isfinite(high)
        if ((price == 0) & bounded).any():
            raise ValueError(
                "L1: a column of weight 0 is free and has no bounds, and column "
                f"{int(np.flatnonzero((price == 0) & bounded)[0])} has both; give it a small weight"
            )
        return cls(price, low, high).settled()

    def settled(self) -> Sides:
        """Return the same with an infinite price and bounds of 0 for columns left out."""
        out = np.isinf(self.price) | ((self.lower == 0) & (self.upper == 0))
        low, high = np.where(out, 0.0, self.lower), np.where(out, 0.0, self.upper)
        return Sides(np.where(out, np.inf, self.price), low, high)

    def fitting(self, n_features: int) -> Sides:
        """Return these, which must be of so many columns."""
        if self.price.size != n_features:
            raise ValueError(
                f"L1: weights and bounds are of {self.price.size} columns, and X has {n_features}"
            )
        return self

    @property
    def symmetric(self) -> bool:
        """Whether no column has a bound, but for those that are left out."""
        return bool(np.all((self.lower == -self.upper) & ~self.boxed))

    @property
    def boxed(self) -> NDArray[np.bool_]:
        """Columns with a finite bound that is not 0."""
        low, high = self.lower, self.upper
        return (np.isfinite(low) & (low < 0)) | (np.isfinite(high) & (high > 0))

    def take(self, columns: Columns) -> Sides:
        """Return those of these columns."""
        return Sides(self.price[columns], self.lower[columns], self.upper[columns])

    def value(self, w: Array) -> float:
        """Return the gauge; points of the box count as inside up to rounding."""
        slack = 1e-9 * np.where(w > 0, self.upper, -self.lower) if w.size else w
        slack = np.where(np.isfinite(slack), slack, 0.0)
        if (w > self.upper + slack).any() or (w < self.lower - slack).any():
            return float("inf")
        used = w != 0
        return float(np.abs(w[used]) @ self.price[used])

    def ratios(self, z: Array) -> Array:
        """Return what each column's best side has of |z_j| / price_j: 0 where it cannot move."""
        moves = np.where(z > 0, self.upper > 0, self.lower < 0)
        sizes = np.where(moves, np.abs(z), 0.0)
        return np.divide(
            sizes, self.price, out=np.where(sizes > 0, np.inf, 0.0), where=self.price > 0
        )

    def excess(self, z: Array) -> Excess | None:
        """Return what the bounded sides add to conjugates; None where there are none."""
        if not self.boxed.any():
            return None
        widths = np.where(z > 0, self.upper, -self.lower)
        ratios = self.ratios(z)
        bounded = np.isfinite(widths) & (widths > 0) & (z != 0)
        polar = float(ratios[~bounded].max(initial=0.0))
        return Excess(polar, np.abs(z[bounded]), self.price[bounded], widths[bounded])

    def last_step(self, v: Array) -> float:
        """Return the step from which on columns with a price are 0."""
        return float(self.ratios(v)[self.price > 0].max(initial=0.0))

    def point(self, v: Array, step: float) -> ProxPoint:
        """Return the map of step * gauge: soft thresholds step * price_j, cut at the bounds."""
        caps = np.where(v > 0, self.upper, -self.lower)
        price = np.where(np.isfinite(self.price), self.price, 0.0)
        rest = np.abs(v) - step * price
        sizes = np.clip(rest, 0.0, caps)

        def jacobian() -> ProxJacobian:
            return ProxJacobian((((rest > 0) | (step == 0.0)) & (rest < caps)).astype(np.float64))

        return ProxPoint(np.copysign(sizes, v), float(price @ sizes), jacobian)


def by_name(given: Any, names: Sequence[str], rest: float, what: str) -> Any:
    """Return a mapping of names to numbers as one number a column; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    unknown = [name for name in given if name not in set(names)]
    if unknown:
        raise ValueError(f"L1: {what} names column {unknown[0]!r}, which X does not have")
    return np.array([float(given.get(name, rest)) for name in names])


def _numbers(what: str, given: Any, rest: float, n_features: int) -> Array:
    if given is None:
        return np.full(n_features, rest)
    if isinstance(given, Mapping):
        raise ValueError(
            f"L1: {what} by name needs columns with names; pass a data frame, or an array"
        )
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"L1: {what} must be a number or one number a column: {error}") from error
    if numbers.ndim == 0:
        numbers = np.full(n_features, float(numbers))
    if numbers.shape != (n_features,):
        raise ValueError(
            f"L1: {what} must be a number or hold one a column, shape ({n_features},); got "
            f"{numbers.shape}"
        )
    if np.isnan(numbers).any():
        raise ValueError(f"L1: {what} must not be NaN")
    return numbers
