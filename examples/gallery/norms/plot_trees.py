"""
A tree of features
==================

Species in genera in families: which level of the tree carries the effect is unknown. ``Trees``
takes nested sets and selects the ones that pay, whatever their size.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressorCV, norms

leaves = np.arange(64)
tree = [leaves[start : start + size] for size in (16, 8, 4, 2, 1) for start in range(0, 64, size)]

rng = np.random.default_rng(2)
truth = np.zeros(64)
truth[16:32], truth[41], truth[52:56] = 0.7, 2.0, -1.0
X = rng.standard_normal((80, 64))
y = X @ truth + rng.standard_normal(80)
model = AtomicRegressorCV(norms=[norms.Trees(tree, weights="sqrt_size")], cv=5, tol=1e-4).fit(X, y)

fig, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
axes[0].bar(leaves, truth, color="0.75", label="truth")
axes[0].step(leaves, model.coef_, where="mid", label="fit")
axes[0].legend()
for part in model.parts_:
    height, columns = np.linalg.norm(part.weights), np.asarray(part.columns)
    axes[1].plot([columns.min() - 0.4, columns.max() + 0.4], [height, height], "o-", ms=3)
axes[1].set(xlabel="leaf", ylabel="size of the part", title="nodes of the tree in use")
