"""
Effects of columns that were named before
=========================================

Penalized coefficients are too small. A de-biased estimate is not, and comes with an interval, for
columns that were named before the data was seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressorCV
from atomlearn.findings import estimates

rng = np.random.default_rng(1)
X = rng.standard_normal((150, 200))
truth = np.zeros(200)
truth[:5] = [1.0, -0.8, 0.6, 0.4, -0.3]
y = X @ truth + rng.standard_normal(150)
model = AtomicRegressorCV(cv=5, selection="one_standard_error").fit(X, y)
found = estimates(model, X, y, columns=range(10))
print(found)

fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
places = np.arange(10)
ax.plot(places, truth[:10], "k_", ms=18, label="truth")
ax.plot(places - 0.15, found.penalized, "o", label="penalized")
errors = np.abs(found.intervals.T - found.values)
ax.errorbar(places + 0.15, found.values, errors, fmt="^", label="de-biased, named before, 95%")
ax.set_xticks(places, [f"x{column}" for column in places])
ax.legend()
