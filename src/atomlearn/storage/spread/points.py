"""A second-order Taylor model of the profiled loss F(w) = min_b f(X w + b), from sums over rows."""

from __future__ import annotations

import numpy as np

from atomlearn.core import Array, Columns
from atomlearn.storage.spread.rows import Sums


class Bent:
    """The second-order Taylor model of F around a point; for squared loss it is F itself.

    The intercept is eliminated by one Newton step (a Schur complement of the joint Hessian), so
    that the intercept at which the sums were computed only has to be near the optimal one.

    Parameters
    ----------
    columns : (m,) int64
        Columns of the model, in increasing order.
    weights : (m,) float64
        Their coefficients at the point of expansion.
    sums : dict
        Answer to a "bend" request at the point, see ``HeldRows.answer``.
    intercept : bool
        Whether the model has an intercept.

    Attributes
    ----------
    value : float
        F at the point.
    gradient : (m,) float64
    H : (m, m) float64
        Hessian of F at the point.
    shift : float
        The optimal intercept at the point.
    pull : (m,) float64
        Minus the derivative of the optimal intercept with respect to each coefficient.
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
        """Return the step (m,) from the point of expansion to another point.

        The other point has coefficients ``weights`` at ``columns`` and 0 elsewhere; columns that
        are not in the model are ignored.
        """
        known = np.isin(columns, self.columns)
        way = -self.weights
        way[np.searchsorted(self.columns, columns[known])] += weights[known]
        return way

    def shift_at(self, columns: Columns, weights: Array) -> float:
        """Return the optimal intercept at another point, by first-order extrapolation."""
        return float(self.shift - self.pull @ self.move(columns, weights))

    def at(self, columns: Columns, weights: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian of the model over some of its columns.

        The point has coefficients ``weights`` at ``columns`` and 0 at other columns of the model.
        """
        move = self.move(columns, weights)
        at = np.searchsorted(self.columns, columns)
        turned = self.H @ move
        value = self.value + float(move @ (self.gradient + 0.5 * turned))
        return max(value, 0.0), (self.gradient + turned)[at], self.H[np.ix_(at, at)]
