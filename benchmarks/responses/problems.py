"""The problems of counts, labels, classes and times, each made from its seed and kept as files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax, xlogy

from atomlearn.datasets import make_correlated, make_text_like_sparse

Array = NDArray[np.float64]

CLASSES = 3
#: Where data is kept from process to process: 0.8 GB a dense matrix of full size.
KEPT = Path(os.environ.get("ATOMLEARN_BENCHMARK_DATA", tempfile.gettempdir()))


@dataclass(frozen=True, slots=True)
class Problem:
    """min sum_i loss(y_i, x_i'w) + level ||w||_1, level = fraction * the least with w = 0.

    loss : "poisson", "binomial", "multinomial" (three classes, W (p, 3)), "multinomial rows" (with
    sum_j ||W_j||_2 in the place of ||w||_1: features for all classes or none) or "cox" (no ties);
    storage : "dense" (Fortran order, AR(0.5) columns) or "sparse" (CSC, like text).
    """

    loss: str
    storage: str
    n: int
    p: int
    fraction: float

    def __str__(self) -> str:
        return f"{self.loss} {self.storage} {self.n} x {self.p}, {self.fraction:g} of the largest"

    def data(self) -> tuple[Any, Array, float]:
        """Return X, y and the level; of times y has two columns: time, and 1 where it was seen."""
        X, signal = self._design()
        y = answers(self.loss, signal)
        if self.loss == "binomial":
            slope = y / 2
        elif self.loss.startswith("multinomial"):
            slope = np.eye(CLASSES)[y.astype(int)] - 1 / CLASSES
        else:
            slope = -GRADIENTS[self.loss](y, np.zeros(self.n))
        return X, y, self.fraction * float(self._sizes(X.T @ slope).max())

    def objective(self, X: Any, y: Array, level: float, w: Array) -> float:
        """Return the objective in plain NumPy, the same for every solver."""
        used = np.flatnonzero(w.any(axis=1) if w.ndim == 2 else w)
        z = np.asarray(X[:, used] @ w[used])
        return VALUES[self.loss](y, z) + level * float(self._sizes(w).sum())

    def _sizes(self, w: Array) -> Array:
        """Return what is added up in the penalty: |w_j|, or the norms of rows."""
        return np.linalg.norm(w, axis=1) if self.loss.endswith("rows") else np.abs(w)

    def _design(self) -> tuple[Any, Array]:
        """Return X and the signals (n, 3) of unit variance, made in the first process that asks."""
        stem = KEPT / f"responses_{self.storage}_{self.n}_{self.p}"
        signals = stem.with_suffix(".signals.npy")
        dense = self.storage == "dense"
        matrix = stem.with_suffix(".npy" if dense else ".npz")
        if not signals.exists():
            n_true = min(100, self.p // 10)
            if dense:
                made = make_correlated(self.n, self.p, rho=0.5, n_true=n_true, rng=0)
                np.save(matrix, made.X)
            else:
                made = make_text_like_sparse(self.n, self.p, n_true=n_true, rng=0)
                sp.save_npz(matrix, made.X, compressed=False)
            rng = np.random.default_rng(1)
            used = np.flatnonzero(made.coef)
            Z = made.X[:, used] @ rng.standard_normal((used.size, CLASSES))
            np.save(signals, (Z - Z.mean(axis=0)) / Z.std(axis=0))
        X = np.load(matrix) if dense else sp.load_npz(matrix)
        return X, np.load(signals)


def answers(loss: str, signal: Array) -> Array:
    """Return targets drawn from signals (n, 3): of the first, but for classes."""
    rng, z = np.random.default_rng(2), signal[:, 0]
    if loss == "poisson":
        return rng.poisson(np.exp(z)).astype(float)
    if loss == "binomial":
        return np.where(rng.random(z.size) < 1 / (1 + np.exp(-2 * z)), 1.0, -1.0)
    if loss.startswith("multinomial"):
        shares = softmax(2 * signal, axis=1).cumsum(axis=1)
        classes = (rng.random((z.size, 1)) > shares).sum(axis=1)
        return np.asarray(np.minimum(classes, CLASSES - 1), dtype=np.float64)
    time, until = rng.exponential(np.exp(-z)), rng.exponential(2.0, z.size)
    return np.column_stack([np.minimum(time, until), time <= until])


def _cox(y: Array, z: Array) -> float:
    order = np.argsort(-y[:, 0])
    at_risk, seen = np.logaddexp.accumulate(z[order]), y[order, 1] > 0
    return float((at_risk - z[order])[seen].sum())


def _cox_gradient(y: Array, z: Array) -> Array:
    order = np.argsort(-y[:, 0])
    seen, terms = y[order, 1], np.exp(z[order])
    shares = (seen / np.cumsum(terms))[::-1].cumsum()[::-1]
    result = np.empty(z.size)
    result[order] = terms * shares - seen
    return result


def _multinomial(y: Array, z: Array) -> float:
    return float((logsumexp(z, axis=1) - z[np.arange(y.size), y.astype(int)]).sum())


VALUES: dict[str, Callable[[Array, Array], float]] = {
    "poisson": lambda y, z: float((np.exp(z) - y * z + xlogy(y, y) - y).sum()),
    "binomial": lambda y, z: float(np.logaddexp(0, -y * z).sum()),
    "multinomial": _multinomial,
    "multinomial rows": _multinomial,
    "cox": _cox,
}
GRADIENTS: dict[str, Callable[[Array, Array], Array]] = {
    "poisson": lambda y, z: np.exp(z) - y,
    "cox": _cox_gradient,
}

FULL = tuple(
    Problem(loss, storage, n, p, fraction)
    for storage, n, p in (("dense", 1000, 100_000), ("sparse", 20_000, 500_000))
    for loss in ("poisson", "binomial", "multinomial", "multinomial rows", "cox")
    for fraction in ((0.1, 0.01) if loss == "cox" else (0.1,))
)
SMOKE = tuple(
    Problem(loss, storage, 200, 2000, 0.1)
    for storage in ("dense", "sparse")
    for loss in ("poisson", "binomial", "multinomial", "multinomial rows", "cox")
)
