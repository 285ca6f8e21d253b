"""Held-out rows that are nearly training rows: where they are told, and where they are none.

    python -m benchmarks.tuning.copies --tables 20 --out benchmarks/results/tuning_copies.csv

Repeated measures: each of a few subjects has one label, drawn at random, and several rows, so that
nothing can be learned of a new subject: "better" should be said in 5%. Honest tables: independent
rows of few columns or of few values, half of them noise, half with a signal in the first columns:
no row should be left out for being there twice. Each is judged with every ``near_copy`` given,
and without any rule.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import train_test_split

from atomlearn import AtomicClassifier
from atomlearn.designs import as_design
from atomlearn.findings import copies
from atomlearn.findings.held_out import judged_rows

Table = tuple[np.ndarray, np.ndarray]


def subjects(rng, count: int, rows: int, columns: int, own: float, binary: bool = False) -> Table:
    """Return rows of subjects; ``own`` : share of a row's variance that is the row's own."""
    common = rng.standard_normal((count, columns))
    if binary:
        common = np.sign(common)
    X = np.repeat(common, rows, axis=0)
    if own:
        X = np.sqrt(1 - own) * X + np.sqrt(own) * rng.standard_normal(X.shape)
    return X, np.repeat(rng.permutation(np.arange(count) % 2), rows)


def labelled(rng, X: np.ndarray, strength: float) -> Table:
    Z = (X[:, :3] - X[:, :3].mean(axis=0)) / np.maximum(X[:, :3].std(axis=0), 1e-9)
    score = strength * Z.sum(axis=1) / np.sqrt(Z.shape[1]) + rng.logistic(size=len(X))
    return X, (score > np.median(score)).astype(int)


def binary(rng, n: int, p: int) -> np.ndarray:
    return (rng.random((n, p)) < rng.uniform(0.2, 0.8, p)).astype(float)


def one_hot(rng, n: int, levels: tuple[int, ...]) -> np.ndarray:
    return np.hstack([np.eye(k)[rng.integers(k, size=n)] for k in levels])


def items(rng, n: int, p: int, loading: float, levels: int) -> np.ndarray:
    """Return answers to questions that have one trait in common."""
    trait = rng.standard_normal((n, 1))
    latent = loading * trait + np.sqrt(1 - loading**2) * rng.standard_normal((n, p))
    return np.digitize(latent, np.linspace(-1.2, 1.2, levels - 1) if levels > 2 else [0.0]) * 1.0


def classes(rng, n: int, p: int) -> np.ndarray:
    """Return answers that four kinds of people give, a tenth of them otherwise."""
    usual = binary(rng, 4, p)[rng.integers(4, size=n)]
    return np.abs(usual - (rng.random((n, p)) < 0.1))


def kinds_apart(rng, n: int, p: int, kinds: int) -> np.ndarray:
    """Return rows of a few kinds that lie apart, as of tissues."""
    return 3 * rng.standard_normal((kinds, p))[rng.integers(kinds, size=n)] + rng.standard_normal(
        (n, p)
    )


def words(rng, n: int, p: int) -> np.ndarray:
    """Return short texts: rare words, of which a topic has more."""
    rates = rng.gamma(0.3, 0.05, (5, p))[rng.integers(5, size=n)]
    return (rng.random((n, p)) < rates).astype(float)


REPEATED = {
    f"{count} subjects x {rows}, {columns} columns, own {own:g}": (count, rows, columns, own)
    for count, rows in ((15, 8), (60, 3))
    for columns in (10, 100, 1000)
    for own in (0.0, 0.02, 0.05, 0.1, 0.3)
} | {
    f"15 subjects x 8, {columns} columns of 0 and 1": (15, 8, columns, 0.0, True)
    for columns in (5, 10, 20)
}
HONEST = {
    "1 normal column": lambda rng: rng.standard_normal((200, 1)),
    "2 normal columns": lambda rng: rng.standard_normal((200, 2)),
    "4 normal columns": lambda rng: rng.standard_normal((400, 4)),
    "12 columns of 1 factor": lambda rng: items(rng, 200, 12, 0.95, 100),
    "30 normal columns": lambda rng: rng.standard_normal((200, 30)),
    "5 columns of 0 and 1": lambda rng: binary(rng, 400, 5),
    "8 columns of 0 and 1": lambda rng: binary(rng, 400, 8),
    "12 columns of 0 and 1": lambda rng: binary(rng, 1000, 12),
    "30 columns of 0 and 1": lambda rng: binary(rng, 400, 30),
    "3 categories one-hot": lambda rng: one_hot(rng, 400, (5, 4, 6)),
    "5 categories one-hot": lambda rng: one_hot(rng, 400, (3, 4, 2, 5, 3)),
    "8 variants": lambda rng: rng.binomial(2, 0.2, (400, 8)) * 1.0,
    "10 questions, trait .6": lambda rng: items(rng, 400, 10, 0.6, 2),
    "10 questions, trait .9": lambda rng: items(rng, 400, 10, 0.9, 2),
    "10 questions of 5 steps, .8": lambda rng: items(rng, 400, 10, 0.8, 5),
    "10 answers of 4 kinds": lambda rng: classes(rng, 400, 10),
    "30 answers of 4 kinds": lambda rng: classes(rng, 400, 30),
    "factorial design 2^3 x 15": lambda rng: (
        np.tile(np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T, (15, 1)) * 1.0
    ),
    "4 kinds apart, 500 columns": lambda rng: kinds_apart(rng, 150, 500, 4),
    "12 kinds apart, 500 columns": lambda rng: kinds_apart(rng, 150, 500, 12),
    "short texts, 100 words": lambda rng: words(rng, 400, 100),
    "tumors (breast cancer)": lambda rng: load_breast_cancer().data[rng.permutation(569)],
    "irises": lambda rng: load_iris().data[rng.permutation(150)],
    "digits": lambda rng: load_digits().data[rng.permutation(1797)[:1000]],
    "normal and 0/1, 6 columns": lambda rng: np.hstack(
        [binary(rng, 300, 4), rng.standard_normal((300, 2))]
    ),
}


def verdicts(X: np.ndarray, y: np.ndarray, seed: int, rules: list[float]) -> list[tuple]:
    """Return (share left out, verdict) without any rule, and with each ``copies.NEAR``."""
    rows = np.arange(len(y))
    train, test = train_test_split(rows, test_size=0.3, random_state=seed, stratify=y)
    model = AtomicClassifier(alpha=0.02, tol=1e-3).fit(X[train], y[train])
    design, found = as_design(X), []
    for rule in (0.0, *rules):
        known = np.zeros(test.size, dtype=bool)
        if rule:
            copies.NEAR = rule
            alike = copies.repeated_rows(design)
            known = known if alike is None else np.isin(alike[test], alike[train])
        fresh = test[~known]
        better = fresh.size > 0 and judged_rows(model, X[fresh], y[fresh], seed).better
        found.append((known.mean(), better))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20, help="of each kind")
    parser.add_argument("--near", type=float, nargs="*", default=[0.2, 0.25, 0.3, 0.35, 0.4, 0.5])
    parser.add_argument("--strength", type=float, default=1.5)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/tuning_copies.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    head = ["table", "labels", "near_copy", "tables", "left_out", "better"]
    lines = []
    makers = [(name, "of subjects", lambda rng, s=s: subjects(rng, *s)) for name, s in
              REPEATED.items()]  # fmt: skip
    for name, make in HONEST.items():
        for words_, strength in (("noise", 0.0), ("signal", options.strength)):
            makers.append((name, words_, lambda rng, m=make, s=strength: labelled(rng, m(rng), s)))
    for name, labels, make in makers:
        if options.only not in name:
            continue
        found = np.array([
            verdicts(*make(np.random.default_rng([k, len(name)])), k, options.near)
            for k in range(options.tables)
        ])  # fmt: skip
        for place, rule in enumerate((0.0, *options.near)):
            left, better = found[:, place].mean(axis=0)
            lines.append([name, labels, rule, options.tables, f"{left:.3f}", f"{better:.3f}"])
        told = "  ".join(f"{left:.2f}/{better:.2f}" for left, better in found.mean(axis=0))
        print(f"{name:42s} {labels:12s} {told}", flush=True)
        with options.out.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([head, *lines])


if __name__ == "__main__":
    main()
