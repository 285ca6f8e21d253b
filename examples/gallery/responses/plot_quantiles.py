"""
Quantiles: a range instead of a number
======================================

``losses.Quantile(q)`` fits a quantile instead of a mean, certified for the pinball loss itself.
The spread here grows with the first column, so the quantiles fan out.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import losses, solve

rng = np.random.default_rng(0)
X = rng.uniform(0, 2, size=(300, 30))
y = 1.0 + X[:, 0] + (0.2 + 0.6 * X[:, 0]) * rng.standard_normal(300)

fig, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
ax.plot(X[:, 0], y, ".", color="0.7")
grid = np.full((50, 30), 1.0)
grid[:, 0] = np.linspace(0, 2, 50)
for q in (0.1, 0.5, 0.9):
    fit = solve(X, y, loss=losses.Quantile(q), alpha=6 / len(y), tol=1e-4)
    below = np.mean(y <= X @ fit.coef + fit.intercept)
    print(q, fit.status.name, "columns:", fit.active, f"{below:.0%} below")
    ax.plot(grid[:, 0], grid @ fit.coef + fit.intercept, label=f"q = {q}")
ax.set(xlabel="x0", ylabel="y")
ax.legend()
