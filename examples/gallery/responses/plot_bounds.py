"""
Signs and bounds
================

Coefficients that cannot be negative (concentrations, prices, weights of a mixture), or that may not
exceed what is physically possible.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import norms, solve

rng = np.random.default_rng(1)
wavelength = np.linspace(0, 1, 120)
centers, widths = rng.uniform(0, 1, 60), rng.uniform(0.01, 0.02, 60)
spectra = np.exp(-(((wavelength[:, None] - centers) / widths) ** 2))
truth = np.zeros(60)
truth[[5, 20, 41]] = [1.0, 0.6, 0.8]
mixture = spectra @ truth + 0.05 * rng.standard_normal(120)

fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
for ax, (title, norm) in zip(
    axes, {"free signs": norms.L1(), "between 0 and 1": norms.L1(lower=0.0, upper=1.0)}.items(),
    strict=True,
):  # fmt: skip
    fit = solve(spectra, mixture, norm=norm, alpha=0.02 / len(mixture), fit_intercept=False)
    ax.bar(range(60), fit.coef)
    ax.plot([5, 20, 41], [1.0, 0.6, 0.8], "kx")
    ax.set(title=f"{title}: {fit.active.size} substances", xlabel="substance")
