"""Lasso paths of 50 levels: ours against adelie, celer and scikit-learn, by an independent gap.

Data: AR(0.5) columns, 50 of them used. Levels fall from the largest to a hundredth of it. Every
rival runs at several tolerances; ``worst_gap`` is the largest relative duality gap of all levels,
in NumPy, from coefficients alone. Two threads where a rival has them.

    python -m benchmarks.paths --out benchmarks/results
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import paths
from atomlearn.datasets import make_correlated
from benchmarks.harness import Options, Table

Array = NDArray[np.float64]
THREADS, N_LEVELS, RATIO = 2, 50, 0.01


def worst_gap(X: Array, y: Array, levels: Array, coefs: Array) -> float:
    """Return the largest relative duality gap of the lasso over the levels; coefs (levels, p)."""
    residuals = y - coefs @ X.T
    scores = np.abs(residuals @ X).max(axis=1)
    primal = 0.5 * (residuals**2).sum(axis=1) + levels * np.abs(coefs).sum(axis=1)
    shrink = np.minimum(1.0, levels / np.maximum(scores, 1e-300))[:, None]
    dual = 0.5 * (y @ y) - 0.5 * ((y - shrink * residuals) ** 2).sum(axis=1)
    return float(((primal - dual) / primal).max())


def ours(X: Array, y: Array, levels: Array, tolerance: float) -> tuple[Array, float]:
    """atomlearn: coefficients and readings of the data."""
    found = paths.path(X, y, levels=levels, gap=tolerance)
    coefs = np.zeros((levels.size, X.shape[1]))
    coefs[:, found.columns] = found.coefs
    return coefs, found.passes


def adelie(X: Array, y: Array, levels: Array, tolerance: float) -> tuple[Array, float]:
    """adelie: coefficients; it does not count passes."""
    import adelie as ad

    state = ad.grpnet(
        ad.matrix.dense(X, method="naive", n_threads=THREADS), ad.glm.gaussian(y),
        penalty=np.ones(X.shape[1]), lmda_path=levels / y.size, tol=tolerance, intercept=False,
        early_exit=False, progress_bar=False, n_threads=THREADS,
    )  # fmt: skip
    return np.asarray(state.betas.toarray()), float("nan")


def celer(X: Array, y: Array, levels: Array, tolerance: float) -> tuple[Array, float]:
    """celer's path."""
    from celer import celer_path

    coefs = celer_path(X, y, "lasso", alphas=levels / y.size, tol=tolerance)[1]
    return np.asarray(coefs).T, float("nan")


def scikit(X: Array, y: Array, levels: Array, tolerance: float) -> tuple[Array, float]:
    """scikit-learn's path."""
    from sklearn.linear_model import lasso_path

    coefs = lasso_path(X, y, alphas=levels / y.size, tol=tolerance, max_iter=100_000)[1]
    return np.asarray(coefs).T, float("nan")


Rival = Callable[[Array, Array, Array, float], tuple[Array, float]]
RIVALS: list[tuple[str, Rival, tuple[float, ...]]] = [
    ("atomlearn", ours, (1e-3, 1e-4, 1e-6)),
    ("adelie", adelie, (1e-8, 1e-10, 1e-12)),
    ("celer", celer, (1e-3, 1e-4)),
    ("scikit-learn", scikit, (1e-3, 1e-4)),
]


def data(options: Options, n: int = 1000, p: int = 5000) -> tuple[Array, Array]:
    """Return X by columns and y."""
    n, p = (80, 500) if options.smoke else (n, p)
    made = make_correlated(n, p, rho=0.5, n_true=min(50, p // 20), seed=0)
    return np.asfortranarray(made.X, dtype=np.float64), np.asarray(made.y, dtype=np.float64)


def main() -> None:
    """Run every rival at every tolerance, and keep accuracy against time."""
    options = Options.parse(__doc__)
    X, y = data(options)
    largest = float(np.abs(X.T @ y).max())
    levels = np.geomspace(largest, RATIO * largest, N_LEVELS)
    with Table("paths", options) as table:
        for name, rival, tolerances in RIVALS:
            for tolerance in tolerances:
                row: dict[str, Any] = {"solver": name, "n": X.shape[0], "p": X.shape[1]}
                try:
                    seconds, processor = time.perf_counter(), time.process_time()
                    coefs, passes = rival(X, y, levels, tolerance)
                except ImportError as missing:
                    table.add(**row, tolerance=tolerance, missing=str(missing))
                    break
                seconds = time.perf_counter() - seconds
                processor = time.process_time() - processor
                gap = worst_gap(X, y, levels, coefs)
                table.add(
                    **row, tolerance=tolerance, seconds=seconds, processor_s=processor,
                    worst_gap=gap, passes=passes,
                )  # fmt: skip


if __name__ == "__main__":
    main()
