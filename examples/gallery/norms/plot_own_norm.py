"""
A norm of your own, from one function
=====================================

All a fit asks of a norm is: which of your building blocks goes farthest along z? Here they are
intervals of constant height, 40,200 of them, and two running extremes find the best.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressorCV, norms


def best_interval(z):
    """Return the atom: +1 or -1 on the interval where the sum of z is farthest from 0."""
    sums = np.concatenate([[0.0], np.cumsum(z)])
    rise, fall = sums - np.minimum.accumulate(sums), sums - np.maximum.accumulate(sums)
    ends = int(rise.argmax()), int(fall.argmin())
    end, sign = (ends[0], 1.0) if rise[ends[0]] >= -fall[ends[1]] else (ends[1], -1.0)
    start = int((sign * sums[: end + 1]).argmin())
    inside = np.arange(start, end)
    return inside, np.full(inside.size, sign)


rng = np.random.default_rng(0)
truth = np.zeros(200)
truth[30:60], truth[45:50], truth[120:160] = 1.0, 2.0, -0.5
X = rng.standard_normal((120, 200))
y = X @ truth + rng.standard_normal(120)

fig, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, sharey=True, layout="constrained")
candidates = {"l1": norms.L1(), "intervals": norms.UserNorm(best_interval)}
for ax, (title, norm) in zip(axes, candidates.items(), strict=True):
    model = AtomicRegressorCV(norms=[norm], cv=5, n_alphas=12, tol=1e-4).fit(X, y)
    ax.plot(truth, color="0.75", lw=3)
    ax.plot(model.coef_, lw=1)
    ax.set_title(f"{title}: distance to the truth {np.linalg.norm(model.coef_ - truth):.2f}")
