"""
A whole path: lasso and k-support side by side
==============================================

Three hidden factors, five noisy copies of each among 40 columns (the example of Zou and Hastie
2005). The lasso takes one copy of each factor and leaves the rest; the k-support norm keeps
copies together.
"""

import matplotlib.pyplot as plt

from atomlearn import datasets, norms, paths

data = datasets.make_zou_hastie(0)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, norm, title in [
    (axes[0], norms.L1(), "lasso (k = 1)"),
    (axes[1], norms.KSupport(k=15), "k-support, k = 15"),
]:
    found = paths.path(data.X, data.y, norm=norm, n_alphas=40, alpha_ratio=1e-3)
    for column, coefficients in zip(found.columns, found.coefs.T, strict=True):
        matters = data.coef[column] != 0
        ax.semilogx(
            found.alphas / found.alphas[0],
            coefficients,
            color=f"C{column // 5}" if matters else "0.8",
            linewidth=1.5 if matters else 0.7,
        )
    ax.invert_xaxis()
    ax.set(xlabel="alpha / largest alpha", title=title)
    print(title, "passes:", found.passes, "worst proved gap:", found.relative_gaps.max())
axes[0].set_ylabel("coefficient")
