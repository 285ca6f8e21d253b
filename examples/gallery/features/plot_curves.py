"""
A sum of curves
===============

``features="splines"`` turns each input into a curve, and a group norm selects whole inputs. The
columns of the curves are never stored.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressorCV

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(400, 30))
y = np.cos(2 * X[:, 4]) + X[:, 11] ** 2 + 0.3 * rng.normal(size=400)
model = AtomicRegressorCV(norms=["groups"], features="splines", cv=3, n_alphas=10, tol=1e-4)
model.fit(X, y)
used = sorted({int(name.split("[")[0].strip("x")) for name in model.selected_names_})
print("inputs in use:", used)

fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for ax, place, truth in [(axes[0], 4, np.cos(2 * X[:, 4])), (axes[1], 11, X[:, 11] ** 2)]:
    values, effect = model.curve(place)
    order = np.argsort(X[:, place])
    at_zero = truth[np.argmin(np.abs(X[:, place]))]
    ax.plot(X[order, place], truth[order] - at_zero, color="0.7", lw=4, label="truth")
    ax.plot(values, effect, label="fit")
    ax.set(xlabel=f"x{place}", ylabel="effect")
axes[0].legend()
