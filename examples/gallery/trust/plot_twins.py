"""
What else could have stood here
===============================

A selected feature may have a twin that would have done as well. The exact question is: by how
much does the objective rise when it is forbidden? A certified solver answers it fast.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressor
from atomlearn.findings import twins

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 300))
X[:, 50] = X[:, 0] + 0.2 * rng.standard_normal(120)  # a near copy of column 0
y = 2 * X[:, 0] + 2 * X[:, 1] + rng.standard_normal(120)
model = AtomicRegressor(alpha=0.4).fit(X, y)
found = twins(model, X, y, most=6)
for item in found:
    print(
        item.name, f"rise {item.rise:.3f}", "replaced by", item.replaced_by[:2], item.correlated[:1]
    )

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh([item.name for item in found], [item.rise for item in found])
ax.set(xlabel="rise of the objective when forbidden (share of it)")
ax.invert_yaxis()
