"""
A wide table, as it comes
=========================

A CSV with an identifier, categories, dates and gaps: three commands from the file to a report, and
the same from Python.
"""

import shlex
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from atomlearn import FeatureGenerator, datasets
from atomlearn.reports import CoefficientDisplay

folder = Path(tempfile.mkdtemp())


def run(command):
    """Print a command, and what it prints."""
    words = shlex.split(command)
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print(f"$ {command}\n{told.stdout}")


rng = np.random.default_rng(0)
n = 400
table = pd.DataFrame(rng.standard_normal((n, 80)).round(3), columns=[f"m{j}" for j in range(80)])
table.insert(0, "patient", [f"P{j:04d}" for j in range(n)])
table["ward"] = rng.choice(["north", "south", "west"], n)
table["admitted"] = pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d")
table["stage"] = rng.choice(["low", "medium", "high"], n)
risk = (
    1.5 * table.m3 - 1.5 * table.m7 + 2.0 * (table.ward == "north") + 1.5 * (table.stage == "high")
)
table["outcome"] = np.where(risk + rng.logistic(size=n) > 1.0, "relapse", "well")
table.loc[rng.choice(n, 30, replace=False), "m3"] = np.nan
table.to_csv(folder / "patients.csv", index=False)

# %%
# What is in the file, and what would be made of each column? Nothing is computed yet.

run("atomlearn inspect patients.csv --target outcome")

# %%
# Select five features. First comes the verdict: does the model predict rows that it has not seen?
# ``chosen/report.html`` has it all in pictures.

run(
    "atomlearn select patients.csv --target outcome --missing indicator --n-features 5 --out chosen"
)

# %%
# Predictions for new rows come with their identifiers.

table.drop(columns="outcome").head(3).to_csv(folder / "new.csv", index=False)
run("atomlearn predict chosen/model.json new.csv --out predicted.csv")
print((folder / "predicted.csv").read_text())

# %%
# The same from Python: one reader, the same defaults, the same features.

read = datasets.read(folder / "patients.csv", "outcome", missing="indicator")
model = FeatureGenerator(5, groups=read.groups, standardize=True).fit(read.X, read.y)
print([read.feature_names[j] for j in model.get_support(indices=True)])

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
CoefficientDisplay.from_estimator(model, feature_names=read.feature_names, ax=ax)

# %%
# Next: :doc:`/first_contact` (every option), :doc:`/findings` (which of these are real?).
