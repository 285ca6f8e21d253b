"""A second-order Taylor model of the profiled loss F(w) = min_b f(X w + b), from sums over rows."""

from __future__ import annotations

import numpy as np

from atomlearn.core import Array, Columns
from atomlearn.storage.spread.rows import Sums


class TaylorModel:
    """The second-order Taylor model of F around a point; for squared loss it is F itself.

    F(w) = min_b f(X w + b) is the loss f as a function of the coefficients w, with the optimal
    intercept b. The sums are of the joint function of w and b, with derivatives s = df/db,
    c = d2f/db2, g = df/dw, a = d2f/(dw db) and H = d2f/dw2. One Newton step in b, -s/c, gives
    F = f - s^2/(2c), gradient g - (s/c) a and Hessian H - a a'/c. The intercept at which the sums
    were computed therefore only has to be near the optimal one.

    Parameters
    ----------
    columns : (m,) int64
        Columns of the model, in increasing order.
    weights : (m,) float64
        Their coefficients at the point of expansion.
    sums : dict
        Answer to a "bend" request (one for derivatives) at the point, see ``HeldRows.answer``.
    intercept : bool
        Whether the model has an intercept.

    Attributes
    ----------
    value : float
        F at the point.
    gradient : (m,) float64
        Gradient of F at the point.
    H : (m, m) float64
        Hessian of F at the point.
    shift : float
        The optimal intercept at the point.
    pull : (m,) float64
        Minus the derivative of the optimal intercept with respect to each coefficient.
    """

    def __init__(self, columns: Columns, weights: Array, sums: Sums, intercept: bool) -> None:
        """Compute the model at coefficients ``weights`` of ``columns`` from ``sums`` over rows.

        The formulas are those of the class. ``intercept`` says whether the model has an intercept.
        """
        self.columns = columns
        self.weights = weights
        # First and second derivative by the intercept; without an intercept there is no step.
        slope = sums["slope"]
        curvature = sums["curve"]
        inverse = 1.0 / curvature if intercept and curvature > 0.0 else 0.0
        self.pull = inverse * sums["pull"]
        self.shift = sums["shift"] - inverse * slope
        self.value = sums["value"] - 0.5 * inverse * slope**2
        self.gradient = sums["gradient"] - slope * self.pull
        self.H = sums["hessian"] - curvature * np.outer(self.pull, self.pull)

    def move(self, columns: Columns, weights: Array) -> Array:
        """Return the step (m,) from the point of expansion to another point.

        The other point has coefficients ``weights`` at ``columns`` and 0 elsewhere; columns that
        are not in the model are ignored.
        """
        is_known = np.isin(columns, self.columns)
        step = -self.weights
        step[np.searchsorted(self.columns, columns[is_known])] += weights[is_known]
        return step

    def shift_at(self, columns: Columns, weights: Array) -> float:
        """Return the optimal intercept at another point, by first-order extrapolation.

        The point has coefficients ``weights`` at ``columns`` and 0 elsewhere.
        """
        return float(self.shift - self.pull @ self.move(columns, weights))

    def at(self, columns: Columns, weights: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian of the model over some of its columns.

        The point has coefficients ``weights`` at ``columns`` and 0 at other columns of the model.
        With the step d from the point of expansion, the value is F + d'(gradient + H d / 2). A
        negative value is replaced by 0, because losses are at least 0. The gradient is
        gradient + H d, at ``columns``.
        """
        step = self.move(columns, weights)
        positions = np.searchsorted(self.columns, columns)
        change = self.H @ step
        value = self.value + float(step @ (self.gradient + 0.5 * change))
        hessian = self.H[np.ix_(positions, positions)]
        return max(value, 0.0), (self.gradient + change)[positions], hessian
