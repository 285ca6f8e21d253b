"""The l1 problems, each made from its seed in whatever process asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.datasets import make_correlated, make_text_like_sparse

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Problem:
    """min sum_i loss(y_i, x_i'w) + level ||w||_1, level = fraction * the least with w = 0.

    loss : "squared" (with 1/2) or "logistic"; storage : "dense" (Fortran order, AR(0.5) columns)
    or "sparse" (CSC, like text).
    """

    loss: str
    storage: str
    n: int
    p: int
    fraction: float

    def __str__(self) -> str:
        return f"{self.loss} {self.storage} {self.n} x {self.p}, {self.fraction:g} of the largest"

    def data(self) -> tuple[Any, Array, float]:
        """Return X, y and the level."""
        labels = self.loss == "logistic"
        if self.storage == "dense":
            made = make_correlated(
                self.n, self.p, rho=0.5, n_true=min(100, self.p // 10), labels=labels, rng=0
            )
        else:
            made = make_text_like_sparse(self.n, self.p, labels=labels, rng=0)
        slope = 0.5 * made.y if labels else made.y
        return made.X, made.y, self.fraction * float(np.abs(made.X.T @ slope).max())

    def objective(self, X: Any, y: Array, level: float, w: Array) -> float:
        """Return the objective in plain NumPy, the same for every solver."""
        used = np.flatnonzero(w)
        z = X[:, used] @ w[used]
        squared = self.loss == "squared"
        fit = 0.5 * float((y - z) @ (y - z)) if squared else np.logaddexp(0, -y * z).sum()
        return float(fit) + level * float(np.abs(w).sum())


FULL = (
    Problem("squared", "dense", 1000, 100_000, 0.1),
    Problem("squared", "sparse", 20_000, 500_000, 0.1),
    Problem("squared", "sparse", 20_000, 500_000, 0.01),
    Problem("logistic", "sparse", 20_000, 500_000, 0.1),
    Problem("logistic", "sparse", 20_000, 500_000, 0.02),
    Problem("logistic", "dense", 1000, 100_000, 0.1),
    Problem("logistic", "dense", 1000, 100_000, 0.01),
    Problem("squared", "dense", 1000, 100_000, 0.01),
)
SMOKE = (
    Problem("squared", "dense", 100, 1000, 0.1),
    Problem("logistic", "sparse", 300, 5000, 0.05),
)
