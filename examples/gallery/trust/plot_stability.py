"""
Would it be selected again?
===========================

Halves of the rows, drawn again and again: a feature that most halves select is stable. That is
less than being true: a neighbor of a true feature may be as stable.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressor, StabilitySelector, datasets

data = datasets.make_correlated(n=300, p=500, rho=0.6, n_true=15, snr=3.0, rng=2)
selector = StabilitySelector(AtomicRegressor(alpha=0.5), n_resamples=60, random_state=0)
selector.fit(data.X, data.y)
shares = selector.selection_probabilities_
print(f"stable: {selector.get_support().sum()}, expected false: {selector.expected_false_:.2g}")

order = np.argsort(-shares)[:50]
fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.bar(range(50), shares[order], color=["C0" if data.coef[j] else "C3" for j in order])
ax.axhline(selector.threshold, color="k", linestyle=":")
ax.set(xlabel="feature, most stable first (red: not in the truth)", ylabel="share of the halves")
