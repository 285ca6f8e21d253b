"""From .bed, phenotypes and covariates to a report, and to predictions of data coded otherwise.

python examples/genotypes_to_report.py [FOLDER]

Simulates 800 people and 5,000 variants, of which 12 matter, with a covariate and two populations;
then runs the commands that one would type, and predicts the same people from a file in which the
alleles of every second variant are swapped. The predictions agree.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

from atomlearn.cli import main as atomlearn
from atomlearn.datasets import write_plink


def simulate(folder: Path) -> None:
    """Write study.bed with study.pheno and study.covar, and swapped.bed of the same people."""
    rng = np.random.default_rng(0)
    n, p = 800, 5000
    populations = np.clip(rng.uniform(0.1, 0.9, p) + 0.1 * rng.standard_normal((2, p)), 0.05, 0.95)
    belongs = rng.integers(0, 2, n)
    X = rng.binomial(2, populations[belongs]).astype(np.float64)
    effects = np.zeros(p)
    effects[rng.choice(p, 12, replace=False)] = rng.choice([-0.6, 0.6], 12)
    age = rng.integers(20, 80, n)
    y = X @ effects + 0.03 * age + 0.5 * belongs + rng.standard_normal(n)
    X[rng.random(X.shape) < 0.01] = np.nan
    swapped = np.where(np.arange(p) % 2, 2.0 - X, X)
    for name, genotypes in (("study", X), ("swapped", swapped)):
        path = folder / f"{name}.bed"
        write_plink(path, genotypes, positions=range(1000, 1000 * p + 1000, 1000))
        lines = [line.split() for line in path.with_suffix(".bim").read_text().splitlines()]
        for j, line in enumerate(lines):
            turned = name == "swapped" and j % 2
            line[4:] = ["C", "A"] if turned else ["A", "C"]
        path.with_suffix(".bim").write_text("".join("\t".join(line) + "\n" for line in lines))
    people = [f"s{i} s{i}" for i in range(n)]
    trait = (f"{who} {value}\n" for who, value in zip(people, y.tolist(), strict=True))
    (folder / "study.pheno").write_text("FID IID trait\n" + "".join(trait))
    ages = (f"{who} {value}\n" for who, value in zip(people, age.tolist(), strict=True))
    (folder / "study.covar").write_text("FID IID age\n" + "".join(ages))


def predictions(path: Path) -> np.ndarray:
    """Return the predictions of a file."""
    with path.open(newline="") as stream:
        return np.array([float(row["prediction"]) for row in csv.DictReader(stream)])


def main(folder: Path) -> None:
    """Simulate, select, predict twice."""
    simulate(folder)
    words = f"select {folder}/study.bed --pheno {folder}/study.pheno --covar {folder}/study.covar"
    asked = f"--maf 0.01 --geno 0.05 --pcs 2 --n-features 12 --out {folder}/scan"
    atomlearn([*words.split(), *asked.split()])
    for name in ("study", "swapped"):
        words = f"predict {folder}/scan/model.json {folder}/{name}.bed --covar {folder}/study.covar"
        atomlearn([*words.split(), "--out", f"{folder}/{name}.csv"])
    first, second = (predictions(folder / f"{name}.csv") for name in ("study", "swapped"))
    print(f"largest difference of the predictions: {np.abs(first - second).max():.1e}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
