"""The duality gap once more, in plain NumPy: nothing of atomlearn takes part.

With u = f'(X w + b), moved so that sum(u) = 0 where there is an intercept, weak duality gives

    F(w, b) - F* <= f(X w + b) + f*(u) + tau ||w||^2 + R(w) + R*(-X'u - tau w).

Gauges are replaced by upper bounds (any feasible scaling d), polars by upper bounds (any split),
so what comes out bounds the distance to the optimum even where a search ended early.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ball:
    """kind : "l1", "k-support", "elastic net" or "group k-support"; k; labels of the groups."""

    kind: str
    k: int
    labels: NDArray[np.int64] | None = None

    def lengths(self, w: Array) -> Array:
        """Return |w_j|, or the l2 norms of the groups."""
        if self.labels is None:
            return np.abs(w)
        return np.sqrt(np.array([(w[self.labels == g] ** 2).sum() for g in np.unique(self.labels)]))

    def gauge(self, w: Array) -> float:
        """Return (an upper bound of) the norm."""
        magnitudes = self.lengths(w)
        if self.kind == "l1":
            return float(magnitudes.sum())
        if self.kind == "elastic net":
            return max(float(np.linalg.norm(w)), float(magnitudes.sum()) / np.sqrt(self.k))
        used = magnitudes[magnitudes > 0]
        if used.size <= self.k:
            return float(np.linalg.norm(used))
        # The norm is the least sqrt(sum w^2 / d) over 0 <= d <= 1, sum d <= k; d = clip(t |w|).
        low, high = 0.0, self.k / used.min()
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (
                (middle, high) if np.minimum(middle * used, 1).sum() < self.k else (low, middle)
            )
        return float(np.sqrt((used**2 / np.minimum(low * used, 1)).sum()))

    def polar(self, z: Array) -> float:
        """Return (an upper bound of) max <a, z> over the ball, by sorting."""
        magnitudes = np.sort(self.lengths(z))[::-1]
        if self.kind == "l1":
            return float(magnitudes[0])
        if self.kind != "elastic net":
            return float(np.linalg.norm(magnitudes[: self.k]))

        def split(theta: float) -> float:
            return float(
                np.linalg.norm(np.maximum(magnitudes - theta, 0)) + np.sqrt(self.k) * theta
            )

        # ||z - a||_2 + sqrt k ||a||_inf is convex in the level theta = ||a||_inf of the clip a.
        low, high = 0.0, float(magnitudes[0])
        for _ in range(200):
            third = (high - low) / 3
            left, right = low + third, high - third
            low, high = (low, right) if split(left) <= split(right) else (left, high)
        return split(0.5 * (low + high))


@dataclass(frozen=True, slots=True)
class Plain:
    """A problem as arrays: X dense float64; s sample weights; amount the level or the radius."""

    X: Array
    y: Array
    s: Array
    loss: str
    form: str
    ball: Ball
    amount: float
    tau: float
    intercept: bool

    def objective_and_gap(self, w: Array, b: float) -> tuple[float, float]:
        """Return F(w, b) and a bound on F(w, b) - F*."""
        z = self.X @ w + b
        gauge = self.ball.gauge(w)
        objective = loss_value(self.loss, self.y, z, self.s) + 0.5 * self.tau * float(w @ w)
        objective += self._penalty(gauge)
        duals = [self._centered(loss_slope(self.loss, self.y, z, self.s))]
        polar = self.ball.polar(-self.X.T @ duals[0] - self.tau * w)
        if self.form == "penalized" and not self.tau and polar > self.amount:
            duals.append(duals[0] * (self.amount / polar))
        return objective, min(self._gap(w, z, gauge, objective, u) for u in duals)

    def _penalty(self, gauge: float) -> float:
        if self.form == "penalized":
            return self.amount * gauge
        if self.form == "squared":
            return 0.5 * self.amount * gauge**2
        return 0.0 if gauge <= self.amount * (1 + 1e-9) else np.inf

    def _gap(self, w: Array, z: Array, gauge: float, objective: float, u: Array) -> float:
        polar = self.ball.polar(-self.X.T @ u - self.tau * w)
        if self.form == "squared":
            conjugate = polar**2 / (2 * self.amount)
        elif self.form == "constrained":
            conjugate = polar * self.amount
        else:  # level * gauge(w*) <= F*: the solution lies in a ball of that radius
            conjugate = max(polar - self.amount, 0.0) * objective / self.amount
        loss = loss_value(self.loss, self.y, z, self.s) + loss_conjugate(
            self.loss, self.y, u, self.s
        )
        return loss + self.tau * float(w @ w) + self._penalty(gauge) + conjugate

    def _centered(self, u: Array) -> Array:
        """Return u with sum 0: what outweighs shrinks, so that signs and domains stay."""
        if not self.intercept:
            return u
        above, below = u[u > 0].sum(), -u[u < 0].sum()
        factors = np.ones(u.size)
        if above > below > 0:
            factors[u > 0] = below / above
        elif below > above > 0:
            factors[u < 0] = above / below
        elif above != below:
            factors[:] = 0.0
        return u * factors


def loss_value(loss: str, y: Array, z: Array, s: Array) -> float:
    """f(z) = sum_i s_i loss(y_i, z_i)"""
    if loss == "squared":
        return float(s @ (0.5 * (z - y) ** 2))
    if loss == "logistic":
        return float(s @ np.logaddexp(0.0, -y * z))
    return float(s @ (0.5 * np.maximum(1 - y * z, 0.0) ** 2))


def loss_slope(loss: str, y: Array, z: Array, s: Array) -> Array:
    """s_i loss'(y_i, z_i)"""
    if loss == "squared":
        return s * (z - y)
    if loss == "logistic":
        return -s * y * np.exp(-np.logaddexp(0.0, y * z))
    return -s * y * np.maximum(1 - y * z, 0.0)


def loss_conjugate(loss: str, y: Array, u: Array, s: Array) -> float:
    """f*(u) = sup_z <u, z> - f(z); samples of weight 0 have u_i = 0"""
    kept = s > 0
    assert not u[~kept].any()
    y, u, s = y[kept], u[kept], s[kept]
    if loss == "squared":
        return float(u @ y + (u * u / (2 * s)).sum())
    a = -y * u / s
    assert (a >= 0).all()
    if loss == "squared_hinge":
        return float(s @ (0.5 * a * a - a))
    assert (a <= 1 + 1e-15).all()
    a = np.minimum(a, 1.0)
    rest = 1 - a
    entropy = a * np.log(np.where(a > 0, a, 1.0)) + rest * np.log(np.where(rest > 0, rest, 1.0))
    return float(s @ entropy)
