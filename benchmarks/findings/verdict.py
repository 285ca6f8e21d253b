"""How often the verdict says "better" of noise, and of signals of known strength.

    python benchmarks/findings/verdict.py --tables 1000 --out benchmarks/results/verdict.csv

Each table is split once (30% held out), a sparse model is fitted to the rest and judged by the
held-out rows. Of noise, 5% should be called better. In the last two shapes nearly every row is
there several times, by chance.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np

from atomlearn import AtomicClassifier, AtomicRegressor, FeatureGenerator
from atomlearn.findings import held_out_verdict

#: (name, rows, columns, kind)
SHAPES = [
    ("classes 150 x 1500", 150, 1500, "binary"),
    ("classes 60 x 100, one in five", 60, 100, "rare"),
    ("classes 400 x 30", 400, 30, "binary"),
    ("three classes 150 x 200", 150, 200, "three"),
    ("regression 100 x 3000", 100, 3000, "normal"),
    ("regression 60 x 20, heavy tails", 60, 20, "heavy"),
    ("regression 500 x 100, correlated", 500, 100, "correlated"),
    ("counts 200 x 300", 200, 300, "counts"),
    ("classes 400 x 5 of 0 and 1", 400, 5, "two values"),
    ("three categories one-hot, 300", 300, 15, "categories"),
]


def table(n: int, p: int, kind: str, strength: float, rng: np.random.Generator):
    """Return X, y and an estimator; ``strength`` scales the effect of five columns."""
    X = rng.standard_normal((n, p))
    if kind == "two values":
        X = np.sign(X)
    if kind == "categories":
        X = np.hstack([np.eye(5)[rng.integers(5, size=n)] for _ in range(3)])
    if kind == "correlated":
        X = np.sqrt(0.5) * X + np.sqrt(0.5) * rng.standard_normal((n, 1))
    of = [0, 1, 5, 6, 10] if kind == "categories" else slice(5)
    score = strength * X[:, of].sum(axis=1) / np.sqrt(5)
    if kind in ("binary", "rare"):
        cut = {"binary": 0.0, "rare": 0.84 * np.hypot(1, strength)}[kind]
        y = (score + rng.standard_normal(n) > cut).astype(int)
        if rng.random() < 0.5:
            return X, y, FeatureGenerator(n_features=5, batch=1, loss="logistic", standardize=True)
        return X, y, AtomicClassifier(alpha=0.12, tol=1e-4)
    if kind in ("two values", "categories"):
        y = (score + rng.standard_normal(n) > np.median(score)).astype(int)
        return X, y, AtomicClassifier(alpha=0.005, tol=1e-4)
    if kind == "three":
        y = np.digitize(score + rng.standard_normal(n), [-0.43, 0.43])
        return X, y, AtomicClassifier(alpha=0.1, tol=1e-4)
    if kind == "counts":
        y = rng.poisson(np.exp(0.5 * score)).astype(float)
        return X, y, AtomicRegressor(alpha=0.12, loss="poisson", tol=1e-4)
    noise = rng.standard_t(2, n) if kind == "heavy" else rng.standard_normal(n)
    return X, score + noise, AtomicRegressor(alpha=0.2, tol=1e-4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000, help="of noise, over all shapes")
    parser.add_argument("--signal", type=int, default=60, help="tables a strength and shape")
    parser.add_argument("--strengths", type=float, nargs="*", default=[0.5, 1.0, 2.0])
    parser.add_argument("--out", default="benchmarks/results/verdict.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    every = max(1, options.tables // len(SHAPES))
    for strength in [0.0, *options.strengths]:
        for number, (name, n, p, kind) in enumerate(SHAPES):
            count = every if strength == 0 else options.signal
            words, failed = [], 0
            for repetition in range(count):
                rng = np.random.default_rng([number, repetition, round(100 * strength)])
                X, y, model = table(n, p, kind, strength, rng)
                try:
                    found = held_out_verdict(model, X, y, rng=repetition)
                except ValueError:
                    failed += 1
                    continue
                words.append(found.verdict)
            better = sum(word == "better" for word in words)
            few = sum(word == "too few rows to tell" for word in words)
            rows.append([name, strength, len(words), better, few, failed])
            shares = better / max(len(words), 1), few / max(len(words), 1)
            print(
                f"{name:34s} strength {strength:<4g} better {shares[0]:6.3f} too few "
                f"{shares[1]:6.3f} of {len(words)}",
                flush=True,
            )
        if strength == 0:
            better, total = sum(row[3] for row in rows), sum(row[2] for row in rows)
            print(f"noise: better in {better} of {total} ({100 * better / total:.2f}%)", flush=True)
        with Path(options.out).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["shape", "strength", "tables", "better", "too_few", "failed"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
