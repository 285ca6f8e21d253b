"""
The verdict: does the model predict at all?
===========================================

A selection finds something even in pure noise, and its certificate is in order. So the verdict
comes first: does the model predict rows that it has not seen?
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import FeatureGenerator
from atomlearn.findings import held_out_verdict

rng = np.random.default_rng(0)
strengths = [0.0, 0.4, 0.8, 1.6]
verdicts = []
for strength in strengths:
    X = rng.standard_normal((150, 3000))
    y = strength * X[:, :5].sum(axis=1) + rng.standard_normal(150) > 0
    found = held_out_verdict(FeatureGenerator(n_features=10, standardize=True), X, y)
    verdicts.append(found)
    print(f"signal {strength}: {found.verdict}, AUC {found.score:.2f}, p = {found.p_value:.3f}")

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for place, found in enumerate(verdicts):
    color = "C2" if found.verdict == "better" else "C3"
    ax.plot([place, place], found.interval, color=color, lw=4, alpha=0.4)
    ax.plot(place, found.score, "o", color=color)
    ax.plot(place, found.critical, "k_", ms=14)
ax.axhline(0.5, color="0.6", linestyle=":")
ax.set_xticks(range(4), [f"signal {strength}" for strength in strengths])
ax.set(ylabel="AUC on rows not seen", title="dash: above it, better than a guess")
