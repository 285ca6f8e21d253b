"""
Half a million words
====================

Sparse data stays sparse: 5,000 texts with 200,000 words as columns, 100 words a text, a path of
ten levels.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import datasets, paths

data = datasets.make_text_like_sparse(
    n=5000, p=200_000, n_true=50, n_frequent=500, snr=10.0, labels=True, rng=0
)
found = paths.path(data.X, data.y, loss="logistic", n_alphas=10, alpha_ratio=0.05, tol=1e-4)
true = set(np.flatnonzero(data.coef))
hits = [len(true.intersection(result.columns)) for result in found.results]
print("passes over the data:", found.passes, "worst gap:", found.relative_gaps.max())

fig, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
ax.plot(found.n_selected, hits, "o-")
ax.plot([0, 50], [0, 50], ":", color="0.6")
ax.set(xlabel="words selected", ylabel="of the 50 that matter")
