"""
Groups: all of a set, or nothing of it
======================================

Columns that belong together (the levels of a category, the lags of a sensor) enter together.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressorCV, norms

rng = np.random.default_rng(0)
groups = np.arange(300).reshape(30, 10)
truth = np.zeros(300)
truth[groups[[2, 11, 25]]] = rng.choice([-1.0, 1.0], size=(3, 10)) * rng.uniform(0.5, 1.5, (3, 10))
X = rng.standard_normal((100, 300))
y = X @ truth + 2.0 * rng.standard_normal(100)

fig, axes = plt.subplots(3, 1, figsize=(8, 5), sharex=True, sharey=True, layout="constrained")
axes[0].plot(truth, lw=0.8)
axes[0].set_title("truth")
for ax, norm in zip(axes[1:], [norms.L1(), norms.Groups(groups)], strict=True):
    model = AtomicRegressorCV(norms=[norm], cv=5, tol=1e-4).fit(X, y)
    error = np.linalg.norm(model.coef_ - truth)
    ax.plot(model.coef_, lw=0.8)
    ax.set_title(f"{type(norm).__name__}: distance to the truth {error:.2f}")
