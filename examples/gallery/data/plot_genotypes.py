"""
Genotypes at two bits each
==========================

A PLINK ``.bed`` is used as it is. Windows of the genome overlap; a latent group norm over them
selects regions rather than single variants.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import datasets, designs, norms, solve

rng = np.random.default_rng(0)
# Neighbours are correlated: 0, 1 or 2 copies of an allele that drifts along the genome.
walk = np.empty((400, 2, 1000))
walk[..., 0] = rng.standard_normal((400, 2))
for place in range(1, 1000):
    walk[..., place] = 0.9 * walk[..., place - 1] + 0.44 * rng.standard_normal((400, 2))
copies = (walk > 0.3).sum(axis=1).astype(float)
trait = copies[:, [121, 124, 127, 641, 645]].sum(axis=1) + 2.0 * rng.standard_normal(400)

with tempfile.TemporaryDirectory() as folder:
    bed = Path(folder) / "study.bed"
    datasets.write_plink(bed, copies, positions=range(0, 1_000_000, 1000), phenotype=trait)
    study = designs.PlinkBed(bed)
    scaled = designs.Standardized(study)
    found = {}
    for title, norm, level in [
        ("single variants", norms.L1(), 120),
        ("windows of 10 kb", norms.LatentGroups(study.variants.windows(10_000)), 400),
    ]:
        found[title] = solve(scaled, study.target, norm=norm, alpha=level / len(trait))

fig, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
for ax, (title, result) in zip(axes, found.items(), strict=True):
    ax.stem(result.active, np.abs(result.coef[result.active]), basefmt=" ")
    for start in (120, 640):
        ax.axvspan(start, start + 10, color="C1", alpha=0.2)
    ax.set(ylabel="|effect|", title=title)
axes[1].set_xlabel("position, kb (shaded: true regions)")
