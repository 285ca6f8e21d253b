"""
How strong, and which norm: cross-validation
============================================

The estimators with ``CV`` fit warm-started paths for every norm they are given, and choose by
held-out score, or by the rule of one standard error: the simplest model that is not clearly worse
than the best.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import AtomicRegressorCV, datasets, norms

data = datasets.make_correlated(n=150, p=600, rho=0.8, n_true=10, snr=3.0, rng=1)
candidates = [norms.L1(), norms.KSupport(10)]
best = AtomicRegressorCV(norms=candidates, cv=5).fit(data.X, data.y)
simple = AtomicRegressorCV(norms=candidates, cv=5, selection="one_standard_error").fit(
    data.X, data.y
)
for name, model in [("best", best), ("one standard error", simple)]:
    print(
        f"{name}: {model.norm_}, alpha {model.alpha_:.3g}, {np.count_nonzero(model.coef_)} features"
    )

# %%
# Error bars are standard errors over the folds.

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
mean = best.cv_results_["mean_test_score"].reshape(best.alphas_.shape)
error = best.cv_results_["std_test_score"].reshape(best.alphas_.shape) / np.sqrt(5)
for norm, alphas, middle, bar in zip(candidates, best.alphas_, mean, error, strict=True):
    ax.errorbar(alphas, middle, bar, label=type(norm).__name__, capsize=2)
ax.axvline(best.alpha_, color="0.5", linestyle=":")
ax.set(xscale="log", xlabel="alpha", ylabel="held-out score")
ax.invert_xaxis()
ax.legend()
