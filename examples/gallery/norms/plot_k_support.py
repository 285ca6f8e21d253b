"""
k-support: sparsity without throwing twins away
===============================================

The k-support norm is the tightest convex relaxation of "at most k non-zeros and a bounded
length". On correlated columns it behaves as a ridge among the strongest and as l1 on the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import datasets, norms, paths
from atomlearn.designs import as_design

errors = {k: [] for k in [1, 3, 10, 30]}
for seed in range(8):
    data = datasets.make_zou_hastie(seed, n=50)
    for k, found in errors.items():
        path = paths.path(data.X, data.y, norm=norms.KSupport(k), n_alphas=15, tol=1e-4)
        held_out = path.predict(as_design(data.X_validation)) - data.y_validation
        best = np.argmin(np.mean(held_out**2, axis=1))
        found.append(np.mean((path.predict(as_design(data.X_test))[best] - data.y_test) ** 2))

fig, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.boxplot(list(errors.values()), tick_labels=[f"k = {k}" for k in errors])
ax.set(ylabel="error on new data", title="three factors, five copies each (k = 1: lasso)")
