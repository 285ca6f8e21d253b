"""
How many of the selected are false: knockoffs
=============================================

Each column gets a made copy, a knockoff, that knows nothing of the target. If the knockoffs enter
as easily as the columns, the columns are noise. So the false ones are counted without knowing the
truth.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressorCV, KnockoffSelector, datasets

data = datasets.make_correlated(n=500, p=1000, rho=0.5, n_true=50, snr=2.0, rng=0)
true = data.coef != 0
selector = KnockoffSelector(fdr=0.1, random_state=0).fit(data.X, data.y)
lasso = AtomicRegressorCV(cv=5).fit(data.X, data.y)
for name, found in [("knockoffs", selector.get_support()), ("lasso by CV", lasso.coef_ != 0)]:
    share = 1 - np.mean(true[found])
    print(f"{name}: {found.sum()} selected, {share:.0%} of them false, {true[found].sum()} of 50")

# %%
# The statistic of a false feature is as likely to be negative as positive; what lies beyond the
# mirror image of the threshold counts the false ones among the selected.

W = np.ravel(selector.statistics_)
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
bins = np.linspace(-np.abs(W).max(), np.abs(W).max(), 60)
shown = W != 0
ax.hist([W[shown & ~true], W[shown & true]], bins, stacked=True, label=["false", "true"])
for side in (-1, 1):
    ax.axvline(side * np.max(selector.threshold_), color="k", linestyle=":")
ax.set(xlabel="statistic W (those at 0 left out)", ylabel="features")
ax.legend()
