"""
Single features and whole sets at once
======================================

``Union`` takes the atoms of several norms: a set is bought as a whole where it pays, a single
feature where only that one matters.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressorCV, norms

rng = np.random.default_rng(3)
groups = np.arange(200).reshape(20, 10)
truth = np.zeros(200)
truth[groups[2]], truth[[75, 131, 188]] = 0.8, [3.0, -3.0, 2.5]
X = rng.standard_normal((120, 200))
y = X @ truth + 2.0 * rng.standard_normal(120)

candidates = {
    "single": norms.L1(),
    "sets": norms.Groups(groups),
    "both": norms.Union([norms.L1(), norms.Scaled(norms.Groups(groups), 2.0)]),
}
fig, axes = plt.subplots(3, 1, figsize=(8, 5), sharex=True, sharey=True, layout="constrained")
for ax, (title, norm) in zip(axes, candidates.items(), strict=True):
    model = AtomicRegressorCV(norms=[norm], cv=5, tol=1e-4).fit(X, y)
    ax.plot(truth, color="0.75", lw=3)
    ax.plot(model.coef_, lw=1)
    ax.set_title(f"{title}: distance to the truth {np.linalg.norm(model.coef_ - truth):.2f}")
