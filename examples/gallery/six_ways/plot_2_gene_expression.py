"""
Gene expression: genes in rows, samples in another file
=======================================================

A matrix as laboratories send it, with a gene in each row, a file with the phenotype of the samples,
and a ``.gmt`` of pathways.
"""

import shlex
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from atomlearn import KnockoffSelector, datasets

folder = Path(tempfile.mkdtemp())


def run(command):
    """Print a command, and what it prints."""
    words = shlex.split(command)
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print(f"$ {command}\n{told.stdout}")


rng = np.random.default_rng(1)
n, p, width = 250, 900, 15
shared = np.repeat(rng.standard_normal((n, p // width)), width, axis=1)
X = 0.6 * shared + 0.8 * rng.standard_normal((n, p))
signal = X[:, 30:36].sum(axis=1) + X[:, 600:606].sum(axis=1)
ill = signal + rng.logistic(size=n) > 0
genes, samples = [f"G{j:04d}" for j in range(p)], [f"S{i:03d}" for i in range(n)]
pd.DataFrame(X.T.round(4), index=pd.Index(genes, name="gene"), columns=samples).to_csv(
    folder / "genes.csv"
)
status = pd.DataFrame({"sample": samples, "status": np.where(ill, "case", "control")})
status.sample(frac=1.0, random_state=0).to_csv(
    folder / "samples.csv", index=False
)  # in another order
with (folder / "pathways.gmt").open("w") as stream:
    for first in range(0, p, width):
        stream.write(
            "\t".join([f"pathway{first // width}", "", *genes[first : first + width]]) + "\n"
        )

# %%
# Single genes: a dozen of them, chosen together. Samples are matched by name, not by order.

run(
    "atomlearn select genes.csv --transpose --pheno samples.csv --pheno-name status"
    " --n-features 12 --out genes"
)

# %%
# Whole pathways instead: a pathway is in the model or is not.

run(
    "atomlearn select genes.csv --transpose --pheno samples.csv --pheno-name status"
    " --groups pathways.gmt --n-features 2 --out pathways"
)

# %%
# *Which genes matter?* is another question than *which genes predict?* Knockoffs bound the share of
# false ones among those that are named, here at 20%.

read = datasets.read(
    folder / "genes.csv", transpose=True, pheno=folder / "samples.csv", pheno_name="status"
)
selector = KnockoffSelector(fdr=0.2, random_state=0).fit(read.X, read.y)
chosen = selector.get_support(indices=True)
print([read.feature_names[j] for j in chosen])
fig, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
ax.plot(selector.statistics_, ".", ms=3, color="0.6")
ax.plot(chosen, selector.statistics_[chosen], "o", color="C3")
ax.set(xlabel="gene", ylabel="statistic", title="true: genes 30 to 35, 600 to 605")

# %%
# Next: :doc:`/structured` (groups that overlap, trees), :doc:`/findings` (error control).
