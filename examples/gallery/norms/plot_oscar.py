"""
Equal coefficients: OSCAR
=========================

Ordered weighted l1 norms tie coefficients of correlated columns together: clusters get one value.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressor, norms

rng = np.random.default_rng(0)
factors = rng.standard_normal((100, 3))
X = np.repeat(factors, 4, axis=1) + 0.3 * rng.standard_normal((100, 12))
y = factors @ [2.0, -1.0, 0.0] + 0.5 * rng.standard_normal(100)

fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for offset, (title, norm) in enumerate([("l1", norms.L1()), ("OSCAR", norms.OWL.oscar(12, 0.3))]):
    model = AtomicRegressor(norm, alpha=0.1, tol=1e-8).fit(X, y)
    ax.bar(np.arange(12) + 0.35 * offset, model.coef_, 0.35, label=title)
    print(title, np.unique(model.coef_.round(4)).tolist())
ax.set(xlabel="column (four copies of each factor)", ylabel="coefficient")
ax.legend()
