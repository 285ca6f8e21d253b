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
    it is infinite. The loss has a kink at y_i, where any slope between -q and 1 - q is a
    subgradient, and the fit meets a few samples exactly there. So solvers minimize smooth losses,

        max over a in [-q, 1 - q]^n of  sum_i s_i (a_i (z_i - y_i) - width/2 (a_i - c_i)^2),

    one after the other, with c the dual point of the last one. This is the method of multipliers,
    for which the width need not be near 0. Each dual point is also feasible for the pinball loss,
    so the gap that is proved is the gap of the pinball loss itself.

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
        """Raise ValueError unless 0 < q < 1."""
        if not positive("Quantile: q", self.q) < 1.0:
            raise ValueError(f"Quantile: q must be between 0 and 1, got {self.q!r}")

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z) = sum_i s_i max(-q r_i, (1 - q) r_i) of the residuals r = z - y.

        z = ``prediction``, y are the targets, and s = ``weight`` the sample weights.
        """
        residual = prediction - y
        losses = np.maximum(-self.q * residual, (1.0 - self.q) * residual)
        return weighted_sum(weight, losses)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return a subgradient at z = ``prediction``, (n_samples,).

        It is s_i (1 - q) if z_i > y_i, -s_i q if z_i < y_i, and 0 if they are equal. y are the
        targets, and s = ``weight`` the sample weights.
        """
        residual = prediction - y
        slope = np.where(residual > 0.0, 1.0 - self.q, np.where(residual < 0.0, -self.q, 0.0))
        slope *= weight
        return slope

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) = sum_i u_i y_i for u = ``dual`` and the targets y.

        It is ``inf`` if some u_i / s_i is not in [-q, 1 - q], for the sample weights
        s = ``weight``.
        """
        is_feasible = slopes_within(-self.q, 1.0 - self.q, dual, weight) is not None
        return float(dual @ y) if is_feasible else float("inf")

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return zeros, (n_samples,), because the loss is linear except at its kinks.

        ``y``, ``prediction`` and ``weight`` have no effect.
        """
        return np.zeros(y.size)

    def smoothed(self, width: float) -> SmoothQuantile:
        """Return the smooth approximation, at most width / 2 below f per unit of weight.

        width : how strongly the kink is rounded; 0 would be the pinball loss.
        """
        return SmoothQuantile(self.q, width)

    def along(
        self, y: Array, prediction: Array, weight: Array, basis: Array
    ) -> tuple[Array, Array | None] | None:
        """Return c = argmin_c f(z + Q c) and an optimal dual point, for z = ``prediction``.

        Q = ``basis`` (n_samples, k), and c is the regression quantile of the residuals y - z on its
        columns. None if it is not found. y : targets; ``weight`` : sample weights.
        """
        return quantile_along(self.q, y - prediction, weight, basis)

    def best_shift(self, y: Array, linear: Array, weight: Array, start: float) -> float:
        """Return argmin_b f(linear + b): the weighted q-quantile of the residuals y - linear.

        It is exact, so that ``start`` is not needed. y : targets; ``weight`` : sample weights.
        """
        return weighted_quantile(y - linear, weight, self.q)


@final
@dataclass(frozen=True)
class SmoothQuantile(ClippedSlopes):
    """f(z) = sum_i s_i max over a in [-q, 1 - q] of a (z_i - y_i) - width/2 a^2.

    It is quadratic for residuals between -q ``width`` and (1 - q) ``width``. Beyond them it is the
    pinball loss minus a constant on each side. ``Quantile`` describes q and the use
    of this loss.

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
        """(-q, 1 - q, ``width``): the smallest and the largest slope, and the width."""
        return -self.q, 1.0 - self.q, self.width


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the smallest of ``values`` whose cumulative weight is at least a share of the sum.

    values, weight : (n,); share : between 0 and 1, such as 0.5 for the median.
    """
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weight[order])
    # The factor allows for the rounding error of the cumulative sums.
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
    Q = ``basis`` (n_samples, k). It is found by the dual linear program: minimize <u, r> over -q s
    <= u <= (1 - q) s with Q'u = 0. The multipliers of its equations are c (Koenker, Bassett 1978).
    The result is None if r is zero or not finite, or if the program is not solved.
    """
    largest = float(np.abs(residual).max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return None
    bounds = np.column_stack([-q * weight, (1.0 - q) * weight])
    zero = np.zeros(basis.shape[1])
    program: Any = {"A_eq": basis.T, "b_eq": zero, "bounds": bounds, "method": "highs-ds"}
    # Residuals are divided by the largest one, because the tolerances of the solver are absolute.
    solution = linprog(residual / largest, **program)
    if solution.x is None:
        return None
    c = largest * np.asarray(solution.eqlin.marginals)
    return c, np.clip(solution.x, bounds[:, 0], bounds[:, 1])
