"""A real trait of mice, from .bed to report: l1 as bigstatsr does it, beside k-support by window.

python examples/mice_two_ways.py [FOLDER] [--trait Biochem.HDL] [--only WAY]

1,814 outbred mice, 10,346 variants (Valdar et al. 2006; set ATOMLEARN_DATA to the folder of the
data, by default data), of which a quarter is held out. All see the same mice and the covariate sex,
which is not penalized, and choose their level by five folds: the l1 norm on standardized genotypes,
fitted again to all folds; the same but the mean of the five folds' models, each at its own best
level (the CMSA of bigstatsr, Prive et al. 2019); and the k-support norm over windows of 2 Mb next
to each other, which selects regions, of eight levels (down to a 500th of the largest). The first
and the last are commands that write a report.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from genotype_scan import find
from sklearn.model_selection import KFold

from atomlearn import AtomicRegressorCV
from atomlearn.cli import main as atomlearn
from atomlearn.datasets import read, write_plink
from atomlearn.designs import RowSubset, Standardized
from atomlearn.norms import KSupport

WIDTH = 2_000_000
GAP = 1e-4
FOLDS = KFold(5, shuffle=True, random_state=0)


def write(folder: Path, trait: str) -> None:
    """Write mice.bed, mice.pheno, mice.covar, and mice.windows: a region a line."""
    held = np.load(find("gwas_mice_bglr/mice_geno.npz"))
    table = pd.read_csv(find("gwas_mice_bglr/mice_pheno.csv.gz")).set_index("SUBJECT.NAME")
    table = table.reindex(held["ids"])
    names, chromosomes = held["ids"].tolist(), held["chr"].tolist()
    positions = np.rint(1e6 * held["mbp"]).astype(np.int64).tolist()
    write_plink(
        folder / "mice.bed", held["G"], names=held["snp"].tolist(), samples=names,
        chromosomes=chromosomes, positions=positions,
    )  # fmt: skip
    places = sorted({(c, at // WIDTH) for c, at in zip(chromosomes, positions, strict=True)})
    regions = (f"{c}_{w} {c}:{w * WIDTH}-{(w + 1) * WIDTH - 1}\n" for c, w in places)
    (folder / "mice.windows").write_text("".join(regions))
    for ending, column in (("pheno", trait), ("covar", "GENDER")):
        made = pd.DataFrame({"FID": names, "IID": names, column: table[column].to_numpy()})
        made.to_csv(folder / f"mice.{ending}", sep="\t", index=False, na_rep="NA")
    parts = np.random.default_rng(0).permutation(len(names)) < len(names) // 4
    np.save(folder / "part.npy", np.where(parts, "test", "train"))


def by_command(folder: Path, norm: list[str]) -> dict[str, Any]:
    """Run ``atomlearn select`` from the .bed to a report; return what its summary says."""
    out = folder / norm[1].partition(":")[0]
    files = f"--pheno {folder}/mice.pheno --covar {folder}/mice.covar --maf 0.01"
    asked = f"--split-column {folder}/part.npy --gap {GAP:g} --quiet --out {out}"
    atomlearn(["select", f"{folder}/mice.bed", *files.split(), *norm, *asked.split()])
    told = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return {"correlation": told["score"], "selected": told["n_selected"], "gap": told["proved_gap"]}


def training(folder: Path) -> tuple[Any, Any, Any, Any]:
    """Return the genotypes of the training mice, standardized, all y, who is held out, the free."""
    table = read(
        folder / "mice.bed", pheno=folder / "mice.pheno", covar=folder / "mice.covar",
        roles={"split": str(folder / "part.npy")},
    )  # fmt: skip
    test = table.extras["split"] == "test"
    y = np.asarray(table.y, dtype=np.float64)
    X = Standardized(RowSubset(table.X, np.flatnonzero(~test)))
    return table, X, y, test


def by_averages(folder: Path) -> dict[str, Any]:
    """Return what the mean of five models does, each at the best level of its fold."""
    table, X, y, test = training(folder)
    free = np.array(table.covariates)
    models = [
        AtomicRegressorCV("l1", cv=[fold], refit=False, unpenalized=free, tol=GAP).fit(X, y[~test])
        for fold in FOLDS.split(y[~test])
    ]
    weights = np.mean([model.coef_ for model in models], axis=0) / X.scales
    intercept = float(np.mean([model.intercept_ for model in models])) - float(X.means @ weights)
    predicted = table.X.predict(weights)[test] + intercept
    correlation = float(np.corrcoef(y[test], predicted)[0, 1])
    return {"correlation": correlation, "selected": np.count_nonzero(weights), "gap": GAP}


def by_windows(folder: Path) -> dict[str, Any]:
    """Choose among eight levels for k = 20 in Python, then run the command at the best one."""
    table, X, y, test = training(folder)
    at = np.asarray(table.variants.positions) // WIDTH
    names = list(zip(table.variants.chromosomes, at.tolist(), strict=True))
    labels = np.unique([f"{c}_{w}" for c, w in names] + ["sex"], return_inverse=True)[1]
    search = AtomicRegressorCV(
        KSupport(20, groups=labels), n_alphas=8, alpha_ratio=2e-3, form="squared", cv=FOLDS,
        unpenalized=np.array(table.covariates), tol=1e-3,
    ).fit(X, y[~test])  # fmt: skip
    asked = ["--norm", "ksupport:k=20", "--groups", f"{folder}/mice.windows"]
    return by_command(folder, [*asked, "--alpha", f"{search.alpha_:.6g}"])


def main(folder: Path, trait: str, only: str = "") -> list[dict[str, Any]]:
    """Write the files and do all three, or one; return a row of each."""
    write(folder, trait)
    ways = {
        "l1": lambda: by_command(folder, ["--norm", "l1"]),
        "l1, mean of the folds' models": lambda: by_averages(folder),
        "k-support by window, k = 20": lambda: by_windows(folder),
    }
    rows = []
    for way, run in ways.items():
        if not way.startswith(only):
            continue
        began = time.process_time()
        rows.append({"trait": trait, "way": way, **run()})
        rows[-1]["processor_seconds"] = round(time.process_time() - began, 1)
        print(", ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--trait", default="Biochem.HDL")
    parser.add_argument("--only", default="", help="how the way begins, such as k-support")
    parser.add_argument("--kept", type=Path, help="file for the figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = main(folder, given.trait, given.only)
    if given.kept:
        with given.kept.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(found[0]))
            writer.writeheader()
            writer.writerows(found)
