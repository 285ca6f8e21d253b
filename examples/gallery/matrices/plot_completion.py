"""
Completing a matrix from a few of its entries
=============================================

The trace norm fills in what was not observed; no array of the whole matrix is made until you ask
for it.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import designs, norms, solve

rng = np.random.default_rng(0)
truth = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 60))
rows, cols = np.nonzero(rng.random(truth.shape) < 0.35)
observed = truth[rows, cols] + 0.1 * rng.normal(size=rows.size)
design = designs.Entries(rows, cols, truth.shape)
hidden = np.ones(truth.shape, bool)
hidden[rows, cols] = False

levels, errors, ranks = [30.0, 15.0, 8.0, 4.0, 2.0, 1.0, 0.5], [], []
warm = None
for level in levels:
    fit = solve(design, observed, norm=norms.TraceNorm(), level=level, gap=1e-4, warm_start=warm)
    warm = fit
    errors.append(np.sqrt(np.mean((fit.low_rank.toarray() - truth)[hidden] ** 2)))
    ranks.append(fit.low_rank.rank)

fig, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
ax.semilogx(levels, errors, "o-")
for level, error, rank in zip(levels, errors, ranks, strict=True):
    ax.annotate(
        f"rank {rank}", (level, error), textcoords="offset points", xytext=(4, 5), fontsize=8
    )
ax.set(xlabel="level", ylabel="error on entries never seen")
ax.invert_xaxis()
