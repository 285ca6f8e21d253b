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

alphas = np.array([30.0, 15.0, 8.0, 4.0, 2.0, 1.0, 0.5]) / len(observed)
errors, ranks = [], []
warm = None
for alpha in alphas:
    fit = solve(design, observed, norm=norms.TraceNorm(), alpha=alpha, tol=1e-4, warm_start=warm)
    warm = fit
    errors.append(np.sqrt(np.mean((fit.low_rank.toarray() - truth)[hidden] ** 2)))
    ranks.append(fit.low_rank.rank)

fig, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
ax.semilogx(alphas, errors, "o-")
for alpha, error, rank in zip(alphas, errors, ranks, strict=True):
    ax.annotate(
        f"rank {rank}", (alpha, error), textcoords="offset points", xytext=(4, 5), fontsize=8
    )
ax.set(xlabel="alpha", ylabel="error on entries never seen")
ax.invert_xaxis()
