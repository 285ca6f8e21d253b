"""How long a proof takes: problems of SUBSETS, by loss, size, correlation and ridge.

Columns have length 1, k of them have effects of 1 or -1, the signal has five times the variance of
the noise. A gap that was not closed in time is told. ``--threads 1`` for one core.

    python -m benchmarks.subsets.figures --out benchmarks/results/subsets.csv
    python -m benchmarks.subsets.figures --only hard --seconds 60

``--processor`` counts the processor's time in the limits, for a machine that others use too.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tests.oracles.subset_sums import subset_sum

#: name, loss, n, p, k, correlation of neighbours, ridge, seconds allowed
PROBLEMS = (
    ("closed", "squared", 1000, 100_000, 10, 0.0, 0.2, 60),
    ("closed", "squared", 2000, 20_000, 10, 0.5, 0.1, 60),
    ("closed", "squared", 1000, 10_000, 10, 0.1, 0.1, 60),
    ("closed", "squared", 1000, 10_000, 10, 0.5, 0.1, 60),
    ("closed", "squared", 1000, 10_000, 10, 0.9, 0.1, 60),
    ("closed", "squared", 500, 1000, 10, 0.5, 0.03, 60),
    ("weak", "squared", 1000, 10_000, 10, 0.1, 0.03, 60),
    ("weak", "squared", 1000, 10_000, 10, 0.5, 0.03, 60),
    ("weak", "squared", 1000, 10_000, 10, 0.9, 0.03, 60),
    ("hard", "squared", 1000, 10_000, 10, 0.1, 0.01, 30),
    ("hard", "squared", 1000, 10_000, 10, 0.5, 0.01, 60),
    ("hard", "squared", 1000, 10_000, 10, 0.9, 0.01, 30),
    ("weak", "squared", 500, 1000, 10, 0.5, 0.01, 60),
    ("weak", "squared", 1000, 10_000, 25, 0.5, 0.1, 60),
    ("losses", "squared", 1000, 10_000, 10, 0.5, None, 60),
    ("losses", "logistic", 1000, 10_000, 10, 0.5, 0.1, 60),
    ("losses", "logistic", 1000, 10_000, 10, 0.5, None, 30),
    ("losses", "poisson", 1000, 10_000, 10, 0.5, 1.0, 60),
    ("losses", "poisson", 1000, 10_000, 10, 0.5, None, 30),
    ("million", "sparse", 1000, 1_000_000, 10, 0.0, 0.2, 120),
)


def drawn(loss: str, n: int, p: int, k: int, correlation: float) -> tuple[Any, Any, Any]:
    """Return X, y and the columns with an effect."""
    rng = np.random.default_rng(0)
    if loss == "sparse":
        X: Any = sparse.random_array((n, p), density=0.01, rng=rng, format="csc")
        X = X @ sparse.diags_array(1.0 / np.maximum(sparse.linalg.norm(X, axis=0), 1e-9))
        X = sparse.csc_array(X)
    else:
        X = np.empty((n, p), order="F")
        X[:, 0] = rng.standard_normal(n)
        for j in range(1, p):
            rest = np.sqrt(1.0 - correlation**2)
            X[:, j] = correlation * X[:, j - 1] + rest * rng.standard_normal(n)
        X /= np.linalg.norm(X, axis=0)
    true = np.sort(rng.choice(p, k, replace=False))
    signal = X[:, true] @ rng.choice([-1.0, 1.0], k)
    y = signal + rng.standard_normal(n) * signal.std() / np.sqrt(5.0)
    if loss == "logistic":
        y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-3.0 * y / y.std())), 1.0, -1.0)
    elif loss == "poisson":
        y = rng.poisson(np.exp(y / y.std())).astype(float)
    return X, y, true


def measured(name: str, loss: str, *given: Any) -> dict[str, Any]:
    """Return one line of the table."""
    n, p, k, correlation, ridge, seconds = given
    X, y, true = drawn(loss, n, p, k, correlation)
    plain = "squared" if loss == "sparse" else loss
    # A pass, as the unit that a machine is measured by.
    began = time.perf_counter()
    for _ in range(3):
        X.T @ y
    a_pass = (time.perf_counter() - began) / 3
    spent = time.process_time()
    result = subset_sum(X, y, n_features=k, ridge=ridge, loss=plain, time_limit=seconds)
    return {
        "name": name,
        "loss": loss,
        "n": n,
        "p": p,
        "k": k,
        "correlation": correlation,
        "ridge": f"{result.l2:.4g}",
        "status": result.status.name,
        "gap": f"{result.gap:.2e}",
        "objective": f"{result.objective:.5g}",
        "lower_bound": f"{result.lower_bound:.5g}",
        "found": int(np.isin(true, result.columns).sum()),
        "proved_out": result.n_proved_out,
        "nodes": result.nodes,
        "passes": int(result.passes),
        "seconds": f"{result.seconds:.2f}",
        "cpu": f"{time.process_time() - spent:.2f}",
        "in_passes": f"{result.seconds / a_pass:.0f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.processor:
        vars(time)["monotonic"] = time.process_time
    rows = []
    for name, loss, *sizes, seconds in PROBLEMS:
        if given.only and given.only != name:
            continue
        rows.append(measured(name, loss, *sizes, given.seconds or seconds))
        print(" ".join(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
    if given.out and rows:
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
