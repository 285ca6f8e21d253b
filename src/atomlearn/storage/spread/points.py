"""What sums over rows tell of a point: a model of F around it, and what a proof takes there."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array, Columns
from atomlearn.storage.spread.rows import NEAR, Sums


class Bent:
    """F around a point over some columns, increasing; of squared residuals that is F everywhere.

    value, gradient, H : of F there; shift : the best intercept; pull : by how much it falls with
    each coefficient. The sums are at an intercept that is near the best one.
    """

    def __init__(self, columns: Columns, weights: Array, sums: Sums, intercept: bool) -> None:
        self.columns, self.weights = columns, weights
        slope, curve = sums["slope"], sums["curve"]
        share = 1.0 / curve if intercept and curve > 0.0 else 0.0
        self.pull = share * sums["pull"]
        self.shift = sums["shift"] - share * slope
        self.value = sums["value"] - 0.5 * share * slope**2
        self.gradient = sums["gradient"] - slope * self.pull
        self.H = sums["hessian"] - curve * np.outer(self.pull, self.pull)

    def move(self, columns: Columns, weights: Array) -> Array:
        """Return the way to another point; columns that are not known play no part."""
        known, way = np.isin(columns, self.columns), -self.weights
        way[np.searchsorted(self.columns, columns[known])] += weights[known]
        return way

    def shift_at(self, columns: Columns, weights: Array) -> float:
        """Return the best intercept at another point, to first order."""
        return float(self.shift - self.pull @ self.move(columns, weights))

    def at(self, columns: Columns, weights: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian at a point of some of the columns."""
        move, at = self.move(columns, weights), np.searchsorted(self.columns, columns)
        turned = self.H @ move
        value = self.value + float(move @ (self.gradient + 0.5 * turned))
        return max(value, 0.0), (self.gradient + turned)[at], self.H[np.ix_(at, at)]


class ProofSums:
    """What a proof takes of a point: v sums to 0 there, as the heavier of its sides is cut.

    sums : of the point, see ``HeldRows``; scores : X'v.
    """

    def __init__(self, sums: Sums, intercept: bool) -> None:
        self.sums, halves, surplus = sums, sums["scores"], -sums["slope"] if intercept else 0.0
        self._side, self._whole = int(surplus < 0.0), 1.0
        self._cut = 2.0 * abs(surplus) / (sums["size"] + abs(surplus) or 1.0)
        if self._cut > 0.5 * NEAR:  # one side alone, or rounding: v = 0 proves what it can
            self._cut = self._whole = 0.0
        self.scores = self._whole * (halves.sum(axis=0) - self._cut * halves[self._side])

    def conjugate(self, factor: float) -> float:
        """Return a bound from above on f* at -factor v, by convexity and f*(0) <= 0."""
        whole, *sides, all_of_it = self.sums["conjugates"]
        near = max(factor, 1.0 - 0.5 * NEAR)
        of_all, of_side = (1.0 - near) / NEAR, near * self._cut / NEAR
        chord = (1.0 - of_all - of_side) * whole + of_side * sides[self._side] + of_all * all_of_it
        return float(self._whole * factor / near * chord)
