"""
Optimization research
=====================

One problem, several solvers, and the same certificate for all of them. What is compared is what
was proved, in passes over the data, which do not depend on the machine.
"""

import matplotlib.pyplot as plt

from atomlearn import datasets, norms, solve, solvers

data = datasets.make_correlated(n=300, p=3000, rho=0.7, n_true=30, snr=5.0, rng=0)
problem = {"norm": norms.KSupport(20), "alpha": 20 / len(data.y), "form": "squared"}
best = solve(data.X, data.y, **problem, tol=1e-10)
print(best)

# %%
# Papers state their problems in several forms. The ball of this solution's size has the same
# solution; Frank-Wolfe methods ask for the ball.

size = norms.KSupport(20).value(best.coef)
ball = {"norm": norms.KSupport(20), "form": "constrained", "radius": size}
fig, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for name, solver in [
    ("column generation", solvers.ColumnGeneration()),
    ("k-FCFW, Liu et al. 2016", solvers.KFCFW()),
    ("Frank-Wolfe, away steps", solvers.FrankWolfe(direction="away")),
    ("FISTA", solvers.FISTA()),
]:
    found = solve(data.X, data.y, solver=solver, **ball, tol=1e-6, max_iter=200, time_limit=3.0)
    ax.loglog(
        [record.passes for record in found.history],
        [max(record.gap / record.objective, 1e-9) for record in found.history],
        label=name,
    )
    print(f"{name:26s} {found.status.name:14s} {found.passes:5.0f} passes")
ax.set(xlabel="passes over the data", ylabel="proved relative gap")
ax.legend()

# %%
# Every step proves a gap at the point where it stands. Compared with the minimum, each holds.

minimum = best.objective - best.gap
for record in best.history:
    true = record.objective - minimum
    print(f"pass {record.passes:2.0f}: proved {record.gap:.1e}, true at most {true:.1e}")
    assert record.objective - best.objective <= record.gap

# %%
# Next: :doc:`/concepts` (the certificates, derived), :doc:`/own_norm` (a norm of yours in 30
# lines), :doc:`/papers/index` (what of four papers holds).
