"""
Four numbers for one coefficient
================================

Penalized coefficients are too small, refitted ones too large where chance selected them; a
de-biased estimate comes with an interval that may be read for columns chosen beforehand.
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
found = estimates(model, X, y, rng=0)

fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
places = np.arange(found.columns.size)
ax.plot(places, truth[found.columns], "k_", ms=18, label="truth")
ax.plot(places - 0.15, found.penalized, "o", label="penalized")
ax.plot(places, found.refitted, "s", label="refitted")
middle = found.debiased
ax.errorbar(
    places + 0.15, middle, np.abs(found.debiased_interval.T - middle), fmt="^", label="de-biased"
)
ax.set_xticks(places, [f"x{column}" for column in found.columns])
ax.legend()
