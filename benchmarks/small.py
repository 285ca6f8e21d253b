"""Fits of ordinary shapes against scikit-learn: what a fit costs where the data cost nothing.

Gaussian columns, five of them in the target, noise of variance one, an intercept; 0.1 of the level
from which on nothing is selected. Ours to a proved relative gap of 1e-6; ``Lasso`` and liblinear at
their default tolerances are at least as near, once liblinear scales the intercept that it penalizes
(without, it ends up to 0.4% above the optimum). Wall time, and processor time of one process, which
other processes on the machine disturb less; the smallest of all runs.

    python benchmarks/run.py small [--smoke] [--out benchmarks/results]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression

from atomlearn import AtomicClassifier, AtomicRegressor, norms
from benchmarks.harness import Options, Table

SHAPES = [(200, 10), (500, 50), (2000, 500), (20_000, 200), (100, 5000), (500_000, 100)]
Fit = Callable[[], Any]


def data(n_samples: int, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return X and y, of mean zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features))
    y = X[:, :5] @ (2.0 * rng.standard_normal(5)) + rng.standard_normal(n_samples)
    return X, y - y.mean()


def fits(X: NDArray[np.float64], y: NDArray[np.float64]) -> dict[str, Fit]:
    """Return what is timed."""
    n, p = X.shape
    labels, k = np.sign(y), norms.KSupport(min(10, p // 2))
    alpha = 0.1 * float(np.abs(X.T @ y).max()) / n
    gentle = 0.1 * float(np.abs(X.T @ (labels - labels.mean())).max()) / (2 * n)
    alpha_k = 0.1 * k.polar(X.T @ y) / n
    groups = norms.Groups(np.arange(p) // 5)
    squared = 1e-3 * alpha
    liblinear = LogisticRegression(
        l1_ratio=1, C=1 / (n * gentle), solver="liblinear", intercept_scaling=1000.0
    )
    return {
        "lasso, scikit-learn": lambda: Lasso(alpha).fit(X, y),
        "lasso": lambda: AtomicRegressor(alpha=alpha).fit(X, y),
        "logistic, liblinear": lambda: liblinear.fit(X, labels),
        "logistic": lambda: AtomicClassifier(alpha=gentle).fit(X, labels),
        "squared l1": lambda: AtomicRegressor(alpha=squared, form="squared").fit(X, y),
        "groups of 5": lambda: AtomicRegressor(groups, alpha=alpha).fit(X, y),
        "k-support": lambda: AtomicRegressor(k, alpha=alpha_k).fit(X, y),
    }


def measured(fit: Fit, seconds: float) -> tuple[float, float]:
    """Return the least wall time and the least processor time."""
    fit()
    walls, used, until = [], [], time.perf_counter() + seconds
    while len(walls) < 3 or time.perf_counter() < until:
        wall, processor = time.perf_counter(), time.process_time()
        fit()
        walls.append(time.perf_counter() - wall)
        used.append(time.process_time() - processor)
    return min(walls), min(used)


def main() -> None:
    """Time every fit at every shape."""
    options = Options.parse(__doc__)
    warnings.simplefilter("ignore", ConvergenceWarning)
    with Table("small", options) as table:
        for n_samples, n_features in SHAPES[:1] if options.smoke else SHAPES:
            for name, fit in fits(*data(n_samples, n_features)).items():
                wall, used = measured(fit, 0.05 if options.smoke else 0.25)
                shape = f"{n_samples} x {n_features}"
                table.add(shape=shape, fit=name, wall_ms=1e3 * wall, processor_ms=1e3 * used)


if __name__ == "__main__":
    main()
