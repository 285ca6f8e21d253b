"""
Runs of neighbours
==================

In a spectrum, a genome or a time series what matters comes in runs. ``Chains(k)`` selects unions
of runs of at least k neighbours.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressorCV, norms

rng = np.random.default_rng(0)
truth = np.zeros(300)
truth[60:80], truth[180:190] = 1.0, -1.5
X = rng.standard_normal((120, 300))
y = X @ truth + 2.0 * rng.standard_normal(120)

fig, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, sharey=True, layout="constrained")
for ax, norm in zip(axes, [norms.L1(), norms.Chains(8)], strict=True):
    model = AtomicRegressorCV(norms=[norm], cv=5, tol=1e-4).fit(X, y)
    ax.plot(truth, color="0.7", lw=3)
    ax.plot(model.coef_, lw=1)
    error = np.linalg.norm(model.coef_ - truth)
    ax.set_title(f"{type(norm).__name__}: distance to the truth {error:.2f}")
