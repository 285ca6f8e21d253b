"""Sides: weights and bounds of single coefficients, as the l1 norm needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Columns, Form, ProxJacobian, ProxPoint
from atomlearn.core.interfaces.excess import Excess


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
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
        out = np.isinf(price) | ((low == 0) & (high == 0))
        return cls(np.where(out, np.inf, price), np.where(out, 0.0, low), np.where(out, 0.0, high))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sides) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("price", "lower", "upper")
        )

    __hash__ = None  # type: ignore[assignment]

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

    def point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map of the form: soft thresholds theta price_j, cut at the bounds."""
        caps = np.where(v > 0, self.upper, -self.lower)
        sizes = np.where((caps > 0) & np.isfinite(self.price), np.abs(v), 0.0)
        if form == "constrained" and amount == 0.0:
            sizes = np.where(self.price > 0, 0.0, sizes)
        price = np.where(np.isfinite(self.price), self.price, 0.0)
        theta = amount
        if form != "penalized":
            offset, slope = (0.0, 1.0 / amount if amount else np.inf)
            if form == "constrained":
                offset, slope = amount, 0.0
            theta = _threshold(sizes, price, caps, offset, slope)
        shrunk = np.minimum(np.maximum(sizes - theta * price, 0.0), np.maximum(caps, 0.0))
        gauge = float(price @ shrunk)

        def jacobian() -> ProxJacobian:
            rest = sizes - theta * price
            active = (rest > 0) & (rest < caps)
            diagonal = active.astype(np.float64)
            moving = form == "squared" and amount > 0
            if not active.any() or not (moving or (form == "constrained" and theta > 0)):
                return ProxJacobian(diagonal)
            direction = np.where(active, np.copysign(price, v), 0.0)
            total = float(direction @ direction) + (1.0 / amount if moving else 0.0)
            if total <= 0.0:
                return ProxJacobian(diagonal)
            return ProxJacobian(diagonal, direction[:, None], np.array([-1.0 / total]))

        return ProxPoint(np.copysign(shrunk, v), gauge, jacobian)


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


def _threshold(sizes: Array, price: Array, caps: Array, offset: float, slope: float) -> float:
    """Return theta >= 0 with sum_j p_j min(max(m_j - theta p_j, 0), cap_j) = offset + slope theta.

    0 where the left side is below the offset at 0. The left side is piecewise linear and falls:
    its pieces end at (m - cap) / p and m / p; the right one is found by bisection over the sorted
    ends, and theta by one division. O(n log n).
    """
    used = (sizes > 0) & (price > 0)
    m, p, cap = sizes[used], price[used], caps[used]

    def gauge(theta: float) -> float:
        return float(p @ np.minimum(np.maximum(m - theta * p, 0.0), cap))

    if not m.size or np.isinf(slope) or gauge(0.0) <= offset:
        return 0.0
    ends = np.unique(np.concatenate([[0.0], np.maximum((m - cap) / p, 0.0), m / p]))
    ends = ends[np.isfinite(ends)]
    low, high = 0, ends.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        above = gauge(float(ends[middle])) > offset + slope * float(ends[middle])
        low, high = (middle, high) if above else (low, middle)
    left, right = float(ends[low]), float(ends[high])
    rest = m - 0.5 * (left + right) * p
    active = (rest > 0) & (rest < cap)
    fixed = float(p[rest >= cap] @ cap[rest >= cap])
    numerator = float(p[active] @ m[active]) + fixed - offset
    denominator = float(p[active] @ p[active]) + slope
    return float(np.clip(numerator / denominator if denominator else right, left, right))
