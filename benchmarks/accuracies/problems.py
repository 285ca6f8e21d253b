"""Contests that the other benchmarks lack: other losses and penalties, each with few rivals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.datasets import make_correlated
from atomlearn.norms import KSupport

Array = NDArray[np.float64]

#: The ridge beside l1 in the elastic net, per sample; the k of the k-support norm; its form.
RIDGE, K, QUANTILE = 0.05, 50, 0.7


@dataclass(frozen=True, slots=True)
class Problem:
    """min sum_i loss(y_i, x_i'w) + penalty(w) on AR(0.5) columns; level = fraction * the largest.

    kind : "elastic net", "nonnegative lasso", "squared hinge", "Huber", "quantile" (l1, but for
    what their names say), "k-support" (squared form).
    """

    kind: str
    n: int
    p: int
    fraction: float

    def __str__(self) -> str:
        return f"{self.kind} {self.n} x {self.p}, {self.fraction:g} of the largest"

    @property
    def loss(self) -> str:
        """What solvers are chosen by."""
        return self.kind

    def data(self) -> tuple[Any, Array, float]:
        """Return X (Fortran order), y and the level."""
        labels = self.kind == "squared hinge"
        n_true = min(100, self.p // 10)
        made = make_correlated(self.n, self.p, rho=0.5, n_true=n_true, labels=labels, rng=0)
        X, y = made.X, made.y
        z = X.T @ SLOPES.get(self.kind, lambda y: y)(y)
        largest = float(z.max() if self.kind == "nonnegative lasso" else np.abs(z).max())
        if self.kind == "k-support":  # as the ridge it nearly is, nothing is zero at any level
            largest = float(self.n)
        return X, y, self.fraction * largest

    def objective(self, X: Any, y: Array, level: float, w: Array) -> float:
        """Return the objective, the same for every solver."""
        used = np.flatnonzero(w)
        z = X[:, used] @ w[used]
        fit = float(VALUES.get(self.kind, VALUES["squared"])(y, z))
        if self.kind == "k-support":
            return fit + 0.5 * level * float(KSupport(K).value(w)) ** 2
        if self.kind == "nonnegative lasso" and (w < 0).any():
            return np.inf
        ridge = 0.5 * RIDGE * y.size * float(w @ w) if self.kind == "elastic net" else 0.0
        return fit + level * float(np.abs(w).sum()) + ridge


def _pinball(y: Array, z: Array) -> float:
    left = y - z
    return float(np.maximum(QUANTILE * left, (QUANTILE - 1) * left).sum())


def _huber(y: Array, z: Array) -> float:
    left = np.abs(y - z)
    return float(np.where(left <= 1.0, 0.5 * left**2, left - 0.5).sum())


VALUES: dict[str, Callable[[Array, Array], float]] = {
    "squared": lambda y, z: float(0.5 * ((y - z) ** 2).sum()),
    "squared hinge": lambda y, z: float(0.5 * (np.maximum(0.0, 1.0 - y * z) ** 2).sum()),
    "Huber": _huber,
    "quantile": _pinball,
}
#: Minus the derivative of the loss at zero.
SLOPES: dict[str, Callable[[Array], Array]] = {
    "squared hinge": lambda y: y,
    "Huber": lambda y: np.clip(y, -1.0, 1.0),
    "quantile": lambda y: np.where(y > 0, QUANTILE, QUANTILE - 1.0),
}
