"""Genotypes to test with, and their files, written by code that shares none with the reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def naive_write_plink(path: Path, X: Array, phenotype: Array | None = None) -> None:
    """Write .bed, .bim and .fam of copies 0, 1, 2 and NaN, genotype by genotype."""
    n_samples, n_features = X.shape
    codes = {0.0: 0b11, 1.0: 0b10, 2.0: 0b00}
    content = bytearray(b"\x6c\x1b\x01")
    for j in range(n_features):
        column = bytearray((n_samples + 3) // 4)
        for i in range(n_samples):
            code = 0b01 if np.isnan(X[i, j]) else codes[X[i, j]]
            column[i // 4] |= code << (2 * (i % 4))
        content += column
    path.write_bytes(bytes(content))
    path.with_suffix(".bim").write_text(
        "".join(f"{1 + j // 20}\trs{j}\t0\t{1000 * j}\tA\tG\n" for j in range(n_features))
    )
    y = np.full(n_samples, -9.0) if phenotype is None else phenotype
    path.with_suffix(".fam").write_text(
        "".join(f"f{i} s{i} 0 0 1 {float(y[i])!r}\n" for i in range(n_samples))
    )


def genotypes(n_samples: int, n_features: int, missing: float, seed: int = 0) -> Array:
    """Return copies 0, 1, 2 with NaN at a share of the places; one column all NaN, one constant."""
    rng = np.random.default_rng(seed)
    X = rng.binomial(2, rng.uniform(0.05, 0.5, n_features), (n_samples, n_features)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    if missing and n_features > 3:
        X[:, 2] = np.nan
    X[:, -1] = 1.0
    return X


def filled(X: Array) -> Array:
    """Return X with the mean of its column for NaN; 0 where a column has nothing else."""
    known = ~np.isnan(X)
    counts = known.sum(axis=0)
    means = np.where(known, X, 0.0).sum(axis=0) / np.maximum(counts, 1)
    return np.where(known, X, means)
