"""
Counts, with exposure
=====================

Events per region, where regions differ in size. The logarithm of the exposure is an offset: it is
added to every prediction, and has no coefficient.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 500))
exposure = rng.uniform(0.5, 20.0, 300)
rate = np.exp(0.3 + X[:, 0] - 0.7 * X[:, 1] + 0.4 * X[:, 2])
counts = rng.poisson(exposure * rate)

model = AtomicRegressor(alpha=1.0, loss="poisson")
model.fit(X[:200], counts[:200], offset=np.log(exposure[:200]))
print("selected:", np.flatnonzero(model.coef_), "proved gap:", model.gap_)

expected = model.predict(X[200:], offset=np.log(exposure[200:]))
fig, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.loglog(np.maximum(expected, 0.1), counts[200:] + 0.5, ".")
ax.plot([0.3, 300], [0.3, 300], ":", color="0.5")
ax.set(xlabel="expected count, new regions", ylabel="count (+ 1/2)")
