"""Seconds of stability selection: 50 pairs beside adelie, 100 pairs beside a cross-validation.

    python benchmarks/findings/stability_time.py --out benchmarks/results/stability_time.csv

Seconds are of the processor (one thread). adelie runs where it is installed, one path a half along
the same ten levels, ended at the same number of columns.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np

from atomlearn import AtomicRegressor, AtomicRegressorCV, StabilitySelector
from atomlearn.estimators.dependent_rows import halves


def data(n: int, p: int, rho: float = 0.5, n_true: int = 50, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    true = rng.choice(p, n_true, replace=False)
    return X, X[:, true] @ rng.choice([-0.35, 0.35], n_true) + rng.standard_normal(n)


def seconds(action) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def adelie_halves(X, y, levels, most, pairs):
    import adelie as ad

    rng = np.random.default_rng(0)
    for _ in range(pairs):
        for rows in halves(len(y), rng):
            ad.grpnet(
                X=np.asfortranarray(X[rows]), glm=ad.glm.gaussian(y=y[rows]), lmda_path=levels,
                early_exit=False, max_active_size=most, progress_bar=False, n_threads=1,
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="*", default=[1000, 3000])
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--large-pairs", type=int, default=100)
    parser.add_argument("--out", default="benchmarks/results/stability_time.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []

    def keep(*row) -> None:
        rows.append(row)
        print(*row, flush=True)
        with Path(options.out).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["rows", "columns", "what", "seconds"])
            writer.writerows(rows)

    for p in options.columns:
        X, y = data(500, p)
        largest = float(np.abs((y - y.mean()) @ (X - X.mean(axis=0))).max()) / len(y)
        levels, most = largest * np.geomspace(0.9, 0.15, 10), int(np.sqrt(0.5 * p))
        model = StabilitySelector(
            AtomicRegressor(tol=1e-3), 2 * options.pairs, 0.75, 0, alphas=levels, n_features=most
        )
        model.fit(X, y)
        took = min(seconds(lambda m=model, X=X, y=y: m.fit(X, y)) for _ in range(3))
        keep(500, p, f"{options.pairs} pairs", round(took, 3))
        try:
            adelie_halves(X, y, levels, most, 1)
        except ImportError:
            continue
        took = min(
            seconds(lambda X=X, y=y, v=levels, q=most: adelie_halves(X, y, v, q, options.pairs))
            for _ in range(2)
        )
        keep(500, p, f"{options.pairs} pairs, adelie", round(took, 3))
    if options.large_pairs:
        X, y = data(1000, 20_000)
        search = AtomicRegressorCV(tol=1e-4, n_alphas=50)
        took = seconds(lambda: search.fit(X, y))
        keep(1000, 20_000, "one cross-validation, 5 folds, 50 levels", round(took, 2))
        model = StabilitySelector(
            AtomicRegressor(tol=1e-4), 2 * options.large_pairs, 0.75, 0, alphas=search.alphas_
        )
        took = seconds(lambda: model.fit(X, y))
        keep(1000, 20_000, f"{options.large_pairs} pairs, the same 50 levels", round(took, 2))


if __name__ == "__main__":
    main()
