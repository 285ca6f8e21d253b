"""
From summary statistics
=======================

Where rows may not leave their owner, their sums can: the correlations of the columns (in blocks)
and those with the target are enough for any norm and form.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import designs, solve

rng = np.random.default_rng(0)
n, regions, width = 400, 20, 30
shared = rng.standard_normal((n, regions, 1))
X = (0.7 * shared + 0.7 * rng.standard_normal((n, regions, width))).reshape(n, -1)
X = (X - X.mean(axis=0)) / X.std(axis=0)
truth = np.zeros(regions * width)
truth[[5, 100, 333, 481]] = [0.5, -0.4, 0.6, 0.3]
y = X @ truth + rng.standard_normal(n)

# What the owner publishes.
parts = X.reshape(n, regions, width)
blocks = [parts[:, block].T @ parts[:, block] / n for block in range(regions)]
correlation = X.T @ (y - y.mean()) / n

R, target = designs.from_moments(blocks, correlation)
summary = solve(R, target, alpha=0.12, fit_intercept=False)
everything = solve(X, y, alpha=0.12)

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(truth, color="0.75", lw=3, label="truth")
ax.plot(everything.coef, lw=1, label="from the rows")
ax.plot(summary.coef, "--", lw=1, label="from blocks of correlations")
ax.legend()
