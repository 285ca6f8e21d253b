"""How often few rows are told "better", of noise and of signals: the whole cross-validation.

    python benchmarks/findings/few_rows.py --tables 200 --out benchmarks/results/few_rows.csv

60 rows x 200 columns (regression, classes of equal and of unequal size, counts, survival; at one
level and with the level chosen by cross-validation), a signal of five columns. Tables of noise have
strength 0. Which of those that are not "better" have too few rows is looked at in the first --power
of them. Rows are written as they come; those that are there are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn import AtomicClassifier, AtomicRegressor, AtomicRegressorCV, AtomicSurvival
from atomlearn.findings import held_out_verdict, trials
from atomlearn.findings.trials import Trial
from atomlearn.losses import survival_target

KINDS = ("regression", "classes", "rare", "counts", "survival", "regression, CV")
WORDS = ("better", "no better", "too few rows to tell")


def table(kind: str, strength: float, rng: np.random.Generator, n: int = 60, p: int = 200) -> Any:
    """Return X, y and an estimator."""
    X = rng.standard_normal((n, p))
    score = strength * X[:, :5].sum(axis=1) / np.sqrt(5)
    noisy = score + rng.standard_normal(n)
    if kind == "classes":
        return X, (noisy > np.median(noisy)).astype(int), AtomicClassifier(alpha=0.1, tol=1e-4)
    if kind == "rare":
        y = (noisy > np.quantile(noisy, 0.8)).astype(int)
        return X, y, AtomicClassifier(alpha=0.08, tol=1e-4)
    if kind == "counts":
        y = rng.poisson(np.exp(0.5 + 0.7 * score)).astype(float)
        return X, y, AtomicRegressor(alpha=0.2, loss="poisson", tol=1e-4)
    if kind == "survival":
        y = survival_target(rng.random(n) < 0.7, rng.exponential(np.exp(-score)))
        return X, y, AtomicSurvival(alpha=0.1, tol=1e-4)
    model = AtomicRegressorCV(n_alphas=10) if "CV" in kind else AtomicRegressor(alpha=0.2, tol=1e-4)
    return X, noisy, model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200, help="of noise, a kind")
    parser.add_argument("--signal", type=int, default=60, help="tables a kind and strength")
    parser.add_argument("--strengths", type=float, nargs="*", default=[0.7, 1.0, 1.5])
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/few_rows.csv"))
    parser.add_argument("--repeats", type=int, default=trials.N_REPEATS, help="at most")
    parser.add_argument("--power", type=int, default=20, help="tables of a kind and strength")
    options = parser.parse_args()
    trials.N_REPEATS = options.repeats
    with_power = Trial._with_power
    warnings.simplefilter("ignore")
    counts: dict[tuple[str, str], list[int]] = {}
    if options.out.exists():
        with options.out.open(encoding="utf-8") as stream:
            counts = {(r[0], r[1]): [int(v) for v in r[2:]] for r in list(csv.reader(stream))[1:]}
    order = [(0.0, k) for k in range(options.tables)]
    order += [(s, k) for k in range(options.signal) for s in options.strengths]
    for strength, repetition in order:
        for kind in options.kinds:
            cell = counts.setdefault((kind, f"{strength:g}"), [0, 0, 0, 0])
            if repetition != cell[0]:
                continue
            rng = np.random.default_rng([KINDS.index(kind), repetition, round(100 * strength)])
            X, y, model = table(kind, strength, rng)
            asked = repetition < options.power
            Trial._with_power = with_power if asked else lambda trial, found, parts: found
            found = held_out_verdict(model, X, y, rng=repetition)
            cell[0] += 1
            cell[1 + WORDS.index(found.verdict)] += 1
        with options.out.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["kind", "strength", "tables", *WORDS])
            writer.writerows([*key, *value] for key, value in sorted(counts.items()))


if __name__ == "__main__":
    main()
