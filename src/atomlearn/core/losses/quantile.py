"""The pinball loss of quantile regression, and its smooth (Moreau-Yosida) approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from scipy.optimize import linprog

from atomlearn.core.interfaces import Array, positive
from atomlearn.core.losses.clipped import ClippedSlopes
from atomlearn.core.losses.domain import slopes_within, weighted_sum
from atomlearn.core.losses.shift import Explained


@final
@dataclass(frozen=True)
class Quantile(Explained):
    """f(z) = sum_i s_i (q max(0, y_i - z_i) + (1 - q) max(0, z_i - y_i)): the pinball loss.

    Its best constant is the q-quantile of y; at q = 1/2 the loss is half the absolute error.

    Parameters
    ----------
    q : float, default=0.5
        Which quantile, between 0 and 1.

    Notes
    -----
    A dual point has u_i / s_i in [-q, 1 - q]; there the conjugate is sum_i u_i y_i, and elsewhere
    it is infinite. The loss has a kink at y_i, where the fit of a few samples ends up, and any
    slope between -q and 1 - q is one there. So solvers minimize smooth losses instead,

        max over a in [-q, 1 - q]^n of  sum_i s_i (a_i (z_i - y_i) - width/2 (a_i - c_i)^2),

    one after the other, c the dual point of the last one: the method of multipliers, which needs
    no width near 0. Each dual point is one of the pinball loss too, and the gap that is proved is
    that of the pinball loss itself.

    References
    ----------
    R. Koenker, G. Bassett. Regression quantiles. Econometrica 46 (1978) 33-50.
    R. T. Rockafellar. Augmented Lagrangians and applications of the proximal point algorithm in
    convex programming. Mathematics of Operations Research 1 (1976) 97-116.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve
    >>> from atomlearn.losses import Quantile
    >>> y = np.array([0.0, 1.0, 2.0, 3.0, 100.0])
    >>> fit = solve(np.zeros((5, 1)), y, loss=Quantile(0.7), alpha=1.0)
    >>> round(fit.intercept, 6), fit.converged
    (3.0, True)
    """

    q: float = 0.5
    name: ClassVar[str] = "quantile"
    translates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not positive("Quantile: q", self.q) < 1.0:
            raise ValueError(f"Quantile: q must be between 0 and 1, got {self.q!r}")

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return sum_i s_i max(-q (z_i - y_i), (1 - q) (z_i - y_i))."""
        residual = prediction - y
        losses = np.maximum(-self.q * residual, (1.0 - self.q) * residual)
        return weighted_sum(weight, losses)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i (1 - q) if z_i > y_i, -s_i q if z_i < y_i, and 0 if they are equal."""
        residual = prediction - y
        slope = np.where(residual > 0.0, 1.0 - self.q, np.where(residual < 0.0, -self.q, 0.0))
        slope *= weight
        return slope

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return sum_i u_i y_i, ``inf`` if some u_i / s_i is not in [-q, 1 - q]."""
        is_feasible = slopes_within(-self.q, 1.0 - self.q, dual, weight) is not None
        return float(dual @ y) if is_feasible else float("inf")

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return 0, because the loss is linear except at its kinks."""
        return np.zeros(y.size)

    def smoothed(self, width: float) -> SmoothQuantile:
        """Return the smooth approximation, at most width / 2 below f per unit of weight."""
        return SmoothQuantile(self.q, width)

    def along(
        self, y: Array, prediction: Array, weight: Array, basis: Array
    ) -> tuple[Array, Array | None] | None:
        """Return the regression quantile of the residuals on the basis, and its dual point."""
        return quantile_along(self.q, y - prediction, weight, basis)

    def best_shift(self, y: Array, linear: Array, weight: Array, start: float) -> float:
        """Return the weighted q-quantile of the residuals, the minimum itself."""
        return weighted_quantile(y - linear, weight, self.q)


@final
@dataclass(frozen=True)
class SmoothQuantile(ClippedSlopes):
    """f(z) = sum_i s_i max over a in [-q, 1 - q] of a (z_i - y_i) - width/2 a^2.

    Least squares within ``width`` times a slope of y_i, the pinball loss less a constant beyond.
    Parameters and use: see ``Quantile``.

    References
    ----------
    Y. Nesterov. Smooth minimization of non-smooth functions. Mathematical Programming 103 (2005)
    127-152, doi:10.1007/s10107-004-0552-5.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.losses import Quantile
    >>> smooth = Quantile(0.5).smoothed(0.1)
    >>> smooth.gradient(np.zeros(3), np.array([-9.0, 0.01, 9.0]), np.ones(3)).round(6).tolist()
    [-0.5, 0.1, 0.5]
    """

    q: float
    width: float
    name: ClassVar[str] = "quantile"
    # 1 / width bounds the curvature, but is not declared: screening rules that use the bound would
    # exclude columns permanently.

    @property
    def slopes(self) -> tuple[float, float, float]:
        """(-q, 1 - q, ``width``)."""
        return -self.q, 1.0 - self.q, self.width


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the smallest value whose cumulative weight is at least ``share`` of the sum."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weight[order])
    position = int(np.searchsorted(cumulative, share * cumulative[-1] * (1.0 - 1e-14)))
    # Only samples of positive weight can be quantiles.
    while position + 1 < order.size and weight[order[position]] == 0.0:
        position += 1
    return float(values[order[min(position, order.size - 1)]])


def quantile_along(
    q: float, residual: Array, weight: Array, basis: Array
) -> tuple[Array, Array] | None:
    """Return the quantile regression of residuals on a basis: c and an optimal dual point u.

    c = argmin_c sum_i s_i pinball_q(r_i - (Q c)_i), with r = ``residual``, s = ``weight`` and
    Q = ``basis``. It is found by the dual linear program, min <u, r> over -q s <= u <= (1 - q) s
    with Q'u = 0, in which c are the multipliers of the equations (Koenker, Bassett 1978). None if
    r is zero or not finite, or if the program is not solved.
    """
    size = float(np.abs(residual).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    bounds = np.column_stack([-q * weight, (1.0 - q) * weight])
    zero = np.zeros(basis.shape[1])
    program: Any = {"A_eq": basis.T, "b_eq": zero, "bounds": bounds, "method": "highs-ds"}
    solution = linprog(residual / size, **program)
    if solution.x is None:
        return None
    c = size * np.asarray(solution.eqlin.marginals)
    return c, np.clip(solution.x, bounds[:, 0], bounds[:, 1])
