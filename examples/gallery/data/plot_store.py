"""
Data that does not fit
======================

A column store on disk is read as a fit goes. It gives the same answer as the array, and a fit needs
only a few megabytes of memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import datasets, designs, norms, solve

rng = np.random.default_rng(0)
X = rng.standard_normal((500, 20_000)).astype(np.float32)
y = X[:, :10].sum(axis=1) + rng.standard_normal(500)
with tempfile.TemporaryDirectory() as folder:
    np.savez(Path(folder) / "trial.npz", X=X, y=y)
    made = datasets.convert(Path(folder) / "trial.npz", Path(folder) / "trial.store")
    store = designs.OnDisk(made.path)
    print(made.layout, made.dtype, f"{made.n_bytes / 1e6:.0f} MB")
    on_disk = solve(store, store.target, norm=norms.KSupport(10), alpha=60 / len(y), form="squared")
in_memory = solve(X, y, norm=norms.KSupport(10), alpha=60 / len(y), form="squared")
print(on_disk)
print("largest difference:", np.abs(on_disk.coef - in_memory.coef).max())

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.stem(on_disk.coef[:60], basefmt=" ")
ax.set(xlabel="first 60 of 20,000 columns", ylabel="coefficient")
