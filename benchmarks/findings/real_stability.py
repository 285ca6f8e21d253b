"""How much two halves of real tables agree on 20 features: l1, elastic net, generation.

    ATOMLEARN_DATA=... python benchmarks/findings/real_stability.py

Each method selects 20 columns from each of two complementary halves, ten times. Agreement is
Kuncheva's: (common / 20 - 20 / p) / (1 - 20 / p), 1 for the same columns and 0 for chance. l1 and
elastic net fit labels by least squares, feature generation by the logistic loss.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet

from atomlearn import AtomicRegressor, FeatureGenerator, StabilitySelector

SIZE = 20


def tables(folder: Path):
    """Yield (name, X, y); X standardized."""
    for name in ("golub", "alon", "prostate6033", "shipp"):
        data = np.load(folder / "microarray" / f"{name}.npz", allow_pickle=True)
        yield f"gene expression, {name}", data["X"].astype(float), data["y"].astype(float)
    data = np.load(folder / "riboflavin" / "riboflavin.npz", allow_pickle=True)
    yield "gene expression, riboflavin", data["X"], data["y"]
    data = np.load(folder / "20news" / "20news_counts.npz", allow_pickle=True)
    counts = sp.csr_array((data["data"], data["indices"], data["indptr"]), shape=data["shape"])
    rows = np.flatnonzero(np.isin(data["y"], (0, 15)))[::2]  # atheism, christian
    some = counts[rows]
    often = np.flatnonzero(np.diff(some.tocsc().indptr) >= 15)
    words = np.log1p(some[:, often].toarray().astype(float))
    yield "newsgroups, two of religion", words, (data["y"][rows] == 0).astype(float)
    data = np.load(folder / "gwas_mice_bglr" / "mice_geno.npz", allow_pickle=True)
    genotypes = data["G"][:, ::2].astype(float)
    rng = np.random.default_rng(0)  # a trait of known effects on real genotypes
    causal = rng.choice(genotypes.shape[1], 20, replace=False)
    spread = genotypes[:, causal] / np.maximum(genotypes[:, causal].std(axis=0), 1e-9)
    trait = spread @ rng.choice([-1.0, 1.0], 20)
    yield (
        "mouse genotypes, simulated trait",
        genotypes,
        trait + 4.5 * rng.standard_normal(len(trait)),
    )


def standardized(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    return (X[:, spread > 0] - X[:, spread > 0].mean(axis=0)) / spread[spread > 0]


def methods(X: np.ndarray, y: np.ndarray):
    largest = float(np.abs((y - y.mean()) @ X).max()) / len(y)
    levels = largest * np.geomspace(0.95, 0.05, 16)
    yield "l1", AtomicRegressor(tol=1e-3), levels
    for share in (0.5, 0.1):
        model = ElasticNet(l1_ratio=share, tol=1e-3, max_iter=5000)
        yield f"elastic net, {share:g}", model, levels / share
    labels = np.unique(y).size == 2
    loss = "logistic" if labels else "squared"
    yield (
        "feature generation",
        FeatureGenerator(n_features=SIZE, batch=2, loss=loss, standardize=True),
        None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--out", default="benchmarks/results/real_stability.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, X, target in tables(Path(os.environ["ATOMLEARN_DATA"])):
        X, y = standardized(X), target
        n, p = X.shape
        for method, model, levels in methods(X, y):
            start = time.process_time()
            found = StabilitySelector(
                model, 2 * options.pairs, 0.75, 0, alphas=levels, n_features=SIZE
            ).fit(X, y)
            q = found.n_selected_
            common = found.both_probabilities_.sum() / q
            agreement = (common - q / p) / (1 - q / p)
            stable = int((found.selection_probabilities_ >= 0.75).sum())
            seconds = round(time.process_time() - start, 2)
            rows.append([name, n, p, method, round(q, 1), round(agreement, 3), stable, seconds])
            print(*rows[-1], sep=", ", flush=True)
            with Path(options.out).open("w", newline="", encoding="utf-8") as stream:
                writer = csv.writer(stream)
                writer.writerow(["table", "rows", "columns", "method", "selected", "agreement",
                                 "stable", "seconds"])  # fmt: skip
                writer.writerows(rows)


if __name__ == "__main__":
    main()
