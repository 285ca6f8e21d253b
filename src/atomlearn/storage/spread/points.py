"""A quadratic model of the loss around a point, made from sums over rows."""

from __future__ import annotations

import numpy as np

from atomlearn.core import Array, Columns
from atomlearn.storage.spread.rows import Sums


class Bent:
    """The quadratic model of F around a point; for squared loss it is F itself.

    The intercept of the sums only has to be near the best one.

    Attributes
    ----------
    columns : (m,) int64
        Columns of the model, in increasing order.
    weights : (m,) float64
        The point.
    value, gradient, H
        Value, gradient and Hessian of F at the point.
    shift : float
        The best intercept at the point.
    pull : (m,) float64
        Decrease of the best intercept with each coefficient.
    """

    def __init__(self, columns: Columns, weights: Array, sums: Sums, intercept: bool) -> None:
        self.columns = columns
        self.weights = weights
        slope = sums["slope"]
        curve = sums["curve"]
        share = 1.0 / curve if intercept and curve > 0.0 else 0.0
        self.pull = share * sums["pull"]
        self.shift = sums["shift"] - share * slope
        self.value = sums["value"] - 0.5 * share * slope**2
        self.gradient = sums["gradient"] - slope * self.pull
        self.H = sums["hessian"] - curve * np.outer(self.pull, self.pull)

    def move(self, columns: Columns, weights: Array) -> Array:
        """Return the step to another point; columns that the model does not have are left out."""
        known = np.isin(columns, self.columns)
        way = -self.weights
        way[np.searchsorted(self.columns, columns[known])] += weights[known]
        return way

    def shift_at(self, columns: Columns, weights: Array) -> float:
        """Return the best intercept at another point, to first order."""
        return float(self.shift - self.pull @ self.move(columns, weights))

    def at(self, columns: Columns, weights: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian at a point of some of the columns."""
        move = self.move(columns, weights)
        at = np.searchsorted(self.columns, columns)
        turned = self.H @ move
        value = self.value + float(move @ (self.gradient + 0.5 * turned))
        return max(value, 0.0), (self.gradient + turned)[at], self.H[np.ix_(at, at)]
