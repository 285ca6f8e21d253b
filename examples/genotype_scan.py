"""Scan a real trait for the genotypes behind it, from the .bed file, two bits a genotype.

python examples/genotype_scan.py mice [--trait Biochem.HDL]
python examples/genotype_scan.py hapmap [--population YRI]

``mice``: 1,814 outbred mice, 10,346 variants (Valdar et al. 2006), a measured trait with sex taken
off. ``hapmap``: 957 people of HapMap 3, 14,079 variants, who is of a population. Both are scanned
twice: with the squared k-support norm, which keeps correlated variants together, and with a latent
group norm, whose sets are overlapping windows of the genome, so that whole regions come in. Set
ATOMLEARN_DATA to the folder of the data (default: data).
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
from numpy.typing import NDArray

from atomlearn import norms, solve
from atomlearn.datasets import write_plink
from atomlearn.designs import PlinkBed, RowSubset, Standardized
from atomlearn.result import Result

Array = NDArray[np.float64]
#: Share of the largest useful alpha, at which nothing is selected.
SHARE = 0.6


def find(file: str) -> Path:
    """Return a file of the data directory."""
    path = Path(os.environ.get("ATOMLEARN_DATA", "data")) / file
    if not path.is_file():
        raise SystemExit(f"there is no {path}; set ATOMLEARN_DATA to the folder of {file}")
    return path


def mice(folder: Path, trait: str) -> tuple[PlinkBed, Array, NDArray[np.bool_]]:
    """Return the genotypes, the trait with the means of the sexes taken off, and who has it."""
    import pandas as pd

    held = np.load(find("gwas_mice_bglr/mice_geno.npz"))
    table = pd.read_csv(find("gwas_mice_bglr/mice_pheno.csv.gz")).set_index("SUBJECT.NAME")
    table = table.reindex(held["ids"])
    write_plink(
        folder / "mice.bed",
        held["G"],
        names=held["snp"].tolist(),
        chromosomes=held["chr"].tolist(),
        positions=np.rint(1e6 * held["mbp"]).astype(np.int64).tolist(),
        samples=held["ids"].tolist(),
    )
    y = np.array(table[trait], dtype=np.float64)
    sex = table["GENDER"].astype(str).to_numpy()
    known = np.isfinite(y)
    for value in np.unique(sex):
        mine = known & (sex == value)
        y[mine] -= y[mine].mean() if mine.any() else 0.0
    return PlinkBed(folder / "mice.bed"), y / y[known].std(), known


def hapmap(folder: Path, population: str) -> tuple[PlinkBed, Array, NDArray[np.bool_]]:
    """Return the genotypes, +1 for people of the population and -1 for others, and who is known."""
    with tarfile.open(find("plink_hapmap3/hapmap3_1kg_plink.tar.xz")) as archive:
        archive.extractall(folder, filter="data")
    design = PlinkBed(next(folder.glob("HM3*.bed")))
    lines = next(folder.glob("relationships*.txt")).read_text().split("\n")[1:]
    fields = [line.split() for line in lines if line.strip()]
    group = {line[1]: line[-1] for line in fields}
    labels = np.array([group.get(name, "") for name in design.samples.name])
    known = labels != ""
    if not (labels == population).any():
        raise SystemExit(f"no population {population!r}; there are {sorted(set(labels[known]))}")
    return design, np.where(labels == population, 1.0, -1.0), known


def scan(design: PlinkBed, y: Array, known: NDArray[np.bool_], loss: str) -> dict[str, Result]:
    """Return both fits, certified to 1e-6, on standardized genotypes."""
    X = Standardized(RowSubset(design, known))
    target = y[known]
    slope = target - target.mean() if loss == "squared" else 0.5 * (target - target.mean())
    scores = X.scores(slope)
    windows = norms.LatentGroups(design.variants.windows(2_000_000), weights="sqrt_size")
    common: dict[str, Any] = {"loss": loss, "tol": 1e-6}
    return {
        "k-support, k = 20": solve(
            X, target, norm=norms.KSupport(20), form="squared", alpha=1.0, **common
        ),
        "windows of 2 Mb": solve(
            X, target, norm=windows, alpha=SHARE * windows.polar(scores) / len(target), **common
        ),
    }


def report(design: PlinkBed, name: str, result: Result, seconds: float) -> None:
    """Print what was found: the strongest variants, or windows."""
    held = design.variants
    print(
        f"\n{name}: {result.columns.size} variants, relative gap {result.relative_gap:.1e}, "
        f"{result.passes:g} passes, {seconds:.1f} s"
    )
    for place in np.argsort(-np.abs(result.weights))[:5].tolist():
        column = int(result.columns[place])
        print(
            f"  {held.names[column]:<16} chromosome {held.chromosomes[column]:>2}, "
            f"{held.positions[column] / 1e6:7.2f} Mb  {result.weights[place]:+.4f}"
        )
    for part in sorted(result.parts or [], key=lambda p: -float(np.abs(p.weights).sum()))[:5]:
        first, last = held.positions[part.columns[0]], held.positions[part.columns[-1]]
        print(
            f"  window: chromosome {held.chromosomes[int(part.columns[0])]:>2}, "
            f"{first / 1e6:.2f} to {last / 1e6:.2f} Mb, {part.columns.size} variants, "
            f"norm {np.linalg.norm(part.weights):.4f}"
        )


def main(arguments: list[str] | None = None) -> dict[str, Result]:
    """Scan one of the two studies; return the fits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=("mice", "hapmap"))
    parser.add_argument("--trait", default="Biochem.HDL", help="column of the mice's table")
    parser.add_argument("--population", default="YRI", help="of HapMap 3")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if given.study == "mice":
            design, y, known = mice(folder, given.trait)
        else:
            design, y, known = hapmap(folder, given.population)
        print(
            f"{design.path.name}: {design.shape[0]:,} samples x {design.shape[1]:,} variants, "
            f"{design.n_bytes / 1e6:.1f} MB, {int(design.missing.sum()):,} genotypes missing; "
            f"{int(known.sum()):,} samples with the trait"
        )
        began = time.perf_counter()
        fits = scan(design, y, known, "squared" if given.study == "mice" else "logistic")
        for name, result in fits.items():
            report(design, name, result, result.seconds)
        print(f"\nboth scans: {time.perf_counter() - began:.1f} s")
    return fits


if __name__ == "__main__":
    main()
