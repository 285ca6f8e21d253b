"""Group lasso problems, disjoint and overlapping, each made from its seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Columns = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GroupProblem:
    """min sum_i loss(y_i, x_i'L u) + level sum_g ||u_g||_2 over u, L u = w; one problem of groups.

    kind : "figure2" ([V] Figure 2: n = 200, p = 1000, groups of 10, singular values 0.9^(2i)),
    "large" (independent normal columns in groups of 10) or "chains" (all chains of 8 neighbours,
    [V] Figure 3: latent groups, which rivals get as duplicated columns).
    """

    kind: str
    n: int
    p: int
    fraction: float
    loss: str = "squared"

    def __str__(self) -> str:
        return f"{self.kind} {self.n} x {self.p}, {self.fraction:g} of the largest"

    @property
    def size(self) -> int:
        """Columns of a group."""
        return 8 if self.kind == "chains" else 10

    @property
    def members(self) -> Columns:
        """The feature of each lifted column, group after group."""
        if self.kind == "chains":
            first = np.arange(self.p - self.size + 1)
            return (first[:, None] + np.arange(self.size)).ravel()
        return np.arange(self.p)

    def data(self) -> tuple[Any, Array, float]:
        """Return X (p columns, Fortran order), y and the level."""
        rng = np.random.default_rng(0)
        X, w = getattr(self, f"_{self.kind}")(rng)
        signal = X @ w
        noise = 0.1 if self.kind == "chains" else 0.01 * np.sqrt(np.mean(signal**2))
        y = signal + noise * rng.standard_normal(self.n)
        z = (X.T @ y)[self.members]
        largest = np.sqrt(np.add.reduceat(z * z, np.arange(0, z.size, self.size))).max()
        return X, y, self.fraction * float(largest)

    def objective(self, X: Any, y: Array, level: float, w: Array) -> float:
        """Return the objective at the lifted u in plain NumPy."""
        used = np.flatnonzero(w)
        residual = y - X[:, self.members[used]] @ w[used]
        norms = np.sqrt(np.add.reduceat(w * w, np.arange(0, w.size, self.size)))
        return 0.5 * float(residual @ residual) + level * float(norms.sum())

    def _figure2(self, rng: np.random.Generator) -> tuple[Array, Array]:
        left = np.linalg.qr(rng.standard_normal((self.n, self.n)))[0]
        right = np.linalg.qr(rng.standard_normal((self.p, self.n)))[0]
        X = (left * 0.9 ** (2.0 * np.arange(self.n))) @ right.T
        w = np.zeros(self.p)
        w[:50] = 2.0
        return np.asfortranarray(X), w

    def _large(self, rng: np.random.Generator) -> tuple[Array, Array]:
        X = np.empty((self.n, self.p), order="F")
        for start in range(0, self.p, 1000):
            stop = min(start + 1000, self.p)
            X[:, start:stop] = rng.standard_normal((self.n, stop - start))
        w = np.zeros(self.p)
        for group in rng.choice(self.p // 10, 20, replace=False):
            w[10 * group : 10 * group + 10] = rng.standard_normal(10)
        return X, w

    def _chains(self, rng: np.random.Generator) -> tuple[Array, Array]:
        X = np.asfortranarray(rng.standard_normal((self.n, self.p)) / np.sqrt(self.n))
        w = np.zeros(self.p)
        w[:10] = rng.uniform(1.0, 2.0, 10) * rng.choice([-1.0, 1.0], 10)
        return X, w


FULL = (
    GroupProblem("figure2", 200, 1000, 0.1),
    GroupProblem("figure2", 200, 1000, 0.01),
    GroupProblem("chains", 300, 1000, 0.05),
    GroupProblem("large", 2000, 200_000, 0.1),
    GroupProblem("large", 2000, 200_000, 0.01),
)
SMOKE = (GroupProblem("figure2", 40, 100, 0.1), GroupProblem("chains", 60, 100, 0.1))
