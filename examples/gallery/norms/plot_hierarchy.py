"""
Interactions only with their main effects
=========================================

All 780 products of 40 columns are candidates. In a weak hierarchy a product enters only with one of
its two columns, in a strong one only with both.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressor, norms

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 40))
y = X[:, 0] - X[:, 1] + 1.5 * X[:, 0] * X[:, 1] + X[:, 2] + rng.standard_normal(300)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharex=True, layout="constrained")
for ax, title, norm, alpha in [
    (axes[0], "l1", norms.L1(), 0.15),
    (axes[1], "weak hierarchy", norms.Hierarchy("weak"), 0.5),
    (axes[2], "strong hierarchy", norms.Hierarchy("strong"), 0.6),
]:
    model = AtomicRegressor(norm, alpha=alpha, features="interactions", tol=1e-4).fit(X, y)
    sizes = np.abs(model.results_[0].weights)
    shown = np.argsort(-sizes)[:10]
    names = [model.selected_names_[place] for place in shown]
    ax.barh(names, sizes[shown], color=["C1" if ":" in name else "C0" for name in names])
    ax.invert_yaxis()
    ax.set(title=f"{title}: {sizes.size} terms", xlabel="size of the coefficient")
