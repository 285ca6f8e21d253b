"""
Covariates that are never penalized
===================================

Age, sex or principal components are to be adjusted for, not selected. ``unpenalized=`` keeps them
out of the penalty: they are minimized over like the intercept, and the gap stays exact.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressor

rng = np.random.default_rng(0)
age = rng.standard_normal(200)
genes = rng.standard_normal((200, 400))
genes[:, 100:140] += age[:, None]  # forty genes follow age, and do nothing else
y = 3.0 * age + genes[:, 0] - genes[:, 1] + 0.5 * rng.standard_normal(200)
X = np.column_stack([age, genes])

fig, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, sharey=True, layout="constrained")
for ax, free in zip(axes, [None, [0]], strict=True):
    model = AtomicRegressor(alpha=0.3, unpenalized=free).fit(X, y)
    ax.stem(model.coef_[1:], basefmt=" ", markerfmt=".")
    n_selected = np.count_nonzero(model.coef_[1:])
    ax.set_title(f"age {'free' if free else 'penalized'}: {n_selected} genes")
