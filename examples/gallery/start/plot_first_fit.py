"""
A first fit, and what it proves
===============================

200 samples, 5000 features, ten of which matter. ``solve`` minimizes a sum of losses plus a
penalty, and returns a point together with a bound on how far its objective is from the minimum.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import solve

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 5000))
y = X[:, :10].sum(axis=1) + 0.5 * rng.standard_normal(200)

result = solve(X, y, alpha=25 / len(y))
print(result)

# %%
# Left: the first ten features are found; the others that entered have small coefficients. Right:
# every pass over the data proves a gap for the current point. So a fit may be stopped at any time,
# and its gap is still true.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].stem(result.active, result.coef[result.active], basefmt=" ")
axes[0].set(xlabel="feature", ylabel="coefficient", title="selected features")
passes = [record.passes for record in result.history]
gaps = [max(record.gap / record.objective, 1e-16) for record in result.history]
axes[1].semilogy(passes, gaps, "o-")
axes[1].axhline(1e-6, color="0.6", linestyle=":")
axes[1].set(xlabel="passes over the data", ylabel="proved relative gap", title="convergence")
