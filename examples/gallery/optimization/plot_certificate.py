"""
A certificate at every pass, against the truth
==============================================

The proved gap is an upper bound on the distance to the optimum. Here both are known: the bound is
never below, and seldom far above.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import datasets, norms, solve

data = datasets.make_correlated(n=300, p=5000, rho=0.9, n_true=50, snr=3.0, rng=0)
settings = {"norm": norms.KSupport(20), "alpha": 3 / len(data.y), "form": "squared"}
optimum = solve(data.X, data.y, tol=1e-12, **settings)
result = solve(data.X, data.y, tol=1e-8, **settings)
passes = [record.passes for record in result.history]
proved = np.array([record.gap for record in result.history])
truth = np.array([record.objective for record in result.history]) - optimum.objective

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.semilogy(passes, proved, "o-", label="proved gap")
ax.semilogy(passes, np.maximum(truth, 1e-12), "s--", label="true distance")
ax.set(xlabel="passes over the data", ylabel="objective")
ax.legend()
print("the bound held at every pass:", bool(np.all(proved >= truth)))
