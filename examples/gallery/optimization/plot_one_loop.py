"""
Watching a fit from outside
===========================

Observers see every step: here, which columns enter and leave, and how the model settles.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import datasets, solve

seen = []


def watch(progress):
    """Note the columns in use after each step."""
    seen.append(set(progress.warm_start().columns.tolist()))


data = datasets.make_correlated(n=200, p=2000, rho=0.8, n_true=20, snr=4.0, rng=1)
result = solve(data.X, data.y, alpha=5 / len(data.y), tol=1e-10, observers=[watch])
final = set(result.columns.tolist())

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
steps = np.arange(len(seen))
ax.bar(steps, [len(step & final) for step in seen], label="of the final model")
ax.bar(
    steps,
    [len(step - final) for step in seen],
    bottom=[len(step & final) for step in seen],
    label="others",
)
ax.set(xlabel="step", ylabel="columns in use")
ax.legend()
