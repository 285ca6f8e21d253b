"""
Six solvers on one problem
==========================

The same problem and the same certificate for all of them, counted in passes over the data. Methods
that fit all weights again in each step need the fewest.
"""

import matplotlib.pyplot as plt

from atomlearn import datasets, solve, solvers

data = datasets.make_correlated(n=200, p=3000, rho=0.5, n_true=30, snr=5.0, rng=0)
reference = solve(data.X, data.y, alpha=100 / len(data.y), tol=1e-10)
ball = {"form": "constrained", "radius": float(abs(reference.coef).sum())}
rivals = {
    "column generation": solvers.ColumnGeneration(),
    "atoms, [V]": solvers.AtomGeneration(),
    "k-FCFW, [L]": solvers.KFCFW(),
    "Frank-Wolfe": solvers.FrankWolfe(),
    "pairwise": solvers.FrankWolfe(direction="pairwise"),
    "FISTA": solvers.FISTA(),
}
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, solver in rivals.items():
    limits = {"tol": 1e-6, "max_iter": 300, "time_limit": 4.0}
    result = solve(data.X, data.y, solver=solver, **ball, **limits)
    gaps = [max(record.gap / record.objective, 1e-9) for record in result.history]
    ax.loglog([record.passes for record in result.history], gaps, label=name)
    print(f"{name:20s} {result.status.name:14s} {result.passes:6.0f} passes")
ax.set(xlabel="passes over the data", ylabel="proved relative gap")
ax.legend()
