"""
Genotypes, with phenotypes and covariates
=========================================

A PLINK ``.bed`` stays at two bits a genotype. Phenotypes and covariates are joined by FID and IID,
covariates are in the model without penalty, and the model keeps the alleles.
"""

import shlex
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from atomlearn import datasets

folder = Path(tempfile.mkdtemp())


def run(command):
    """Print a command, and what it prints."""
    words = shlex.split(command)
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print(f"$ {command}\n{told.stdout}")


rng = np.random.default_rng(0)
n, p = 600, 3000
copies = rng.binomial(2, rng.uniform(0.1, 0.5, p), (n, p)).astype(float)
true = rng.choice(p, 8, replace=False)
age = rng.integers(20, 80, n)
bmi = copies[:, true].sum(axis=1) + 0.05 * age + rng.standard_normal(n)
copies[rng.random(copies.shape) < 0.01] = np.nan
datasets.write_plink(folder / "study.bed", copies, positions=range(1000, 1000 * p + 1000, 1000))
people = pd.read_csv(folder / "study.fam", sep=r"\s+", header=None).iloc[:, :2]
people.columns = ["FID", "IID"]
people.assign(bmi=bmi.round(3)).iloc[::-1].to_csv(folder / "study.pheno", sep=" ", index=False)
people.assign(age=age).to_csv(folder / "study.covar", sep=" ", index=False)

# %%
# Filters by allele frequency and missing rate are PLINK's.

run(
    "atomlearn select study.bed --pheno study.pheno --pheno-name bmi --covar study.covar"
    " --maf 0.01 --geno 0.05 --n-features 8 --out scan"
)

# %%
# ``selected.csv`` has chromosome, position and both alleles. To predict, variants are found by name
# or position, and swapped alleles are recoded.

found = pd.read_csv(folder / "scan/selected.csv")
print(found.to_string(index=False, max_cols=8))
run("atomlearn predict scan/model.json study.bed --covar study.covar --out predicted.csv")

fig, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
ax.vlines(true, 0, 1, color="0.85", lw=4, label="true")
variants = found[found["position"].notna()]
ax.stem(variants["position"] / 1000 - 1, variants["standardized_coefficient"].abs(), basefmt=" ")
ax.set(xlabel="variant", ylabel="effect per st. dev.")
ax.legend(loc="upper right")

# %%
# Next: :doc:`/data` (a file larger than memory), :doc:`/first_contact` (windows, components).
