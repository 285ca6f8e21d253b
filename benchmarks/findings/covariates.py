"""How often features are told "better" than covariates that alone are behind the target.

    python benchmarks/findings/covariates.py --tables 100

The target and half of 40 columns depend on an age: numbers, classes, counts and survival times. 120
and 400 rows, of which 30% are held out. Rows are written as
they come.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicSurvival
from atomlearn.findings import held_out_verdict
from atomlearn.findings.trials import Trial
from atomlearn.losses import survival_target

KINDS = ("numbers", "classes", "counts", "survival")


def table(kind: str, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return X, y and an estimator."""
    X = rng.standard_normal((n, 41))
    X[:, 1:21] += 0.7 * X[:, :1]
    score = 1.5 * X[:, 0]
    if kind == "classes":
        return X, (score + rng.logistic(size=n) > 0).astype(int), AtomicClassifier(alpha=0.03)
    if kind == "counts":
        y = rng.poisson(np.exp(0.5 * score)).astype(float)
        return X, y, AtomicRegressor(alpha=0.05, loss="poisson")
    if kind == "survival":
        y = survival_target(rng.random(n) < 0.7, rng.exponential(np.exp(-score)))
        return X, y, AtomicSurvival(alpha=0.03)
    return X, score + rng.standard_normal(n), AtomicRegressor(alpha=0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/covariates.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    Trial._with_power = lambda trial, found, parts: found  # "better" does not hang on it
    counts: dict[tuple[str, int, str], list[int]] = {}
    for repetition in range(options.tables):
        for number, kind in enumerate(KINDS):
            for n in (120, 400):
                X, y, model = table(kind, n, np.random.default_rng([number, repetition, n]))
                for baseline, free in (("the covariates alone", [0]), ("a guess", None)):
                    if free is None and (n == 120 or repetition >= 10):
                        continue
                    cell = counts.setdefault((kind, n, baseline), [0, 0])
                    model.set_params(unpenalized=free, tol=1e-3)
                    cell[0] += 1
                    cell[1] += held_out_verdict(model, X, y, rng=repetition).better
        with options.out.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["kind", "rows", "baseline", "tables", "better"])
            writer.writerows([*key, *value] for key, value in sorted(counts.items()))


if __name__ == "__main__":
    main()
