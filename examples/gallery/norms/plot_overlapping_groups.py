"""
Sets that overlap: pathways
===========================

A gene belongs to several pathways. The latent group norm writes the coefficients as a sum of
parts, one a pathway, so what is selected is a *union* of pathways.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from atomlearn import AtomicRegressorCV, norms

rng = np.random.default_rng(1)
names = [f"g{number}" for number in range(120)]
X = pd.DataFrame(rng.standard_normal((100, 120)), columns=names)
pathways = {f"path {start // 6}": names[start : start + 10] for start in range(0, 111, 6)}
active = pathways["path 3"] + pathways["path 12"]
y = X[active].sum(axis=1) + 2.0 * rng.standard_normal(100)

rule = {"cv": 5, "tol": 1e-4, "selection": "one_standard_error"}
latent = AtomicRegressorCV(norms=[norms.LatentGroups(pathways)], **rule).fit(X, y)
lasso = AtomicRegressorCV(norms=["l1"], **rule).fit(X, y)
for part in latent.parts_:
    print(part.name, "norm", round(float(np.linalg.norm(part.weights)), 2))

# %%
# The two true pathways carry nearly all of the weight.

fig, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
for ax, (title, model) in zip(axes, [("lasso", lasso), ("latent groups", latent)], strict=True):
    ax.bar(range(120), model.coef_, color=["C0" if name in active else "C3" for name in names])
    ax.set_title(f"{title}: {np.count_nonzero(model.coef_)} genes (red: not in a true pathway)")
