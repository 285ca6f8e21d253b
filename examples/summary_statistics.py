"""A polygenic score from summary statistics: HapMap 3 genotypes, blocks of linkage, no rows.

python examples/summary_statistics.py [--variants 14079] [--block 100]

957 people of HapMap 3, a made trait of 50 causal variants with a heritability of 0.5. A study of
two thirds of them publishes its correlations with the trait alone; the others are the reference
panel, of which the correlations of variants within blocks come (shrunk, as panels are). The score
fitted from these is compared with the one fitted from the study's rows, on people of neither.
Set ATOMLEARN_DATA to the folder of the data (default: data).
"""

from __future__ import annotations

import argparse
import os
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn import designs, norms, solve

Array = Any
#: How much of a panel's block is taken; the rest is the identity.
TRUST = 0.8


def main() -> None:
    """Fit from sums and from rows, with two norms, and compare the predictions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", type=int, default=14079)
    parser.add_argument("--block", type=int, default=100, help="variants of a block of linkage")
    given = parser.parse_args()
    X = standardized_genotypes(given.variants)
    rng = np.random.default_rng(0)
    order = rng.permutation(X.shape[0])
    study, panel, rest = np.split(order, [550, 800])
    effects = np.zeros(X.shape[1])
    effects[rng.choice(X.shape[1], 50, replace=False)] = rng.standard_normal(50)
    genetic = X @ effects
    y = genetic / genetic.std() + rng.standard_normal(genetic.size)
    y -= y[study].mean()

    correlation = X[study].T @ y[study] / study.size  # all that the study publishes
    starts = range(0, X.shape[1], given.block)
    blocks = [linkage(X[panel, start : start + given.block]) for start in starts]
    began = time.perf_counter()
    R, target = designs.from_moments(blocks, correlation)
    print(f"{len(blocks)} blocks factored in {time.perf_counter() - began:.1f} s")
    for name, norm, form in (
        ("l1", norms.L1(), "penalized"),
        ("k-support, k = 20", norms.KSupport(20), "squared"),
    ):
        top = norm.polar(correlation)
        amount = 0.4 * top if form == "penalized" else 0.4
        how = {"norm": norm, "form": form, "alpha": amount, "fit_intercept": False}
        sums = solve(R, target, **how)
        rows = solve(X[study], y[study], **how)
        for source, fit in (("sums", sums), ("rows", rows)):
            score = np.corrcoef(X[rest] @ fit.coef, y[rest])[0, 1]
            print(
                f"{name}, from {source}: {fit.status.name}, gap {fit.relative_gap:.1e}, "
                f"{fit.columns.size} variants, correlation with the trait {score:.3f}"
            )


def linkage(part: Array) -> Array:
    """Return the correlations of a block in the panel, shrunk towards none."""
    return TRUST * (part.T @ part) / part.shape[0] + (1.0 - TRUST) * np.eye(part.shape[1])


def standardized_genotypes(count: int) -> Array:
    """Return the first variants of HapMap 3, missing ones at the mean, of unit variance."""
    name = "plink_hapmap3/hapmap3_1kg_plink.tar.xz"
    path = Path(os.environ.get("ATOMLEARN_DATA", "data")) / name
    if not path.is_file():
        raise SystemExit(f"there is no {path}; set ATOMLEARN_DATA to the folder of {name}")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(path) as archive:
        members = [m for m in archive.getmembers() if "HM3" in m.name]
        archive.extractall(folder, members, filter="data")
        bed = designs.PlinkBed(next(Path(folder).rglob("*.bed")))
        X = np.asarray(bed.gather(np.arange(min(count, bed.shape[1]))).dense(), dtype=np.float64)
    X = np.where(np.isfinite(X), X, np.nan)
    X -= np.nanmean(X, axis=0)
    X = np.nan_to_num(X)
    return X / np.maximum(X.std(axis=0), 1e-12)


if __name__ == "__main__":
    main()
