"""
Clustering by who explains whom
===============================

``MatrixPursuit`` writes each sample by a few of the others: samples of one subspace choose each
other, and the affinity falls into blocks.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import SpectralClustering

from atomlearn import MatrixPursuit

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(size=(25, 2)) @ rng.normal(size=(2, 12)) for _ in range(4)])
X += 0.05 * rng.standard_normal(X.shape)
model = MatrixPursuit(alpha=0.3 / X.size, tol=1e-4).fit(X)
labels = SpectralClustering(4, affinity="precomputed", random_state=0).fit_predict(model.affinity_)

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
axes[0].imshow(np.sqrt(model.affinity_.toarray()), cmap="magma")
axes[0].set_title("affinity")
axes[1].scatter(range(100), labels, c=np.repeat(range(4), 25), cmap="tab10", s=12)
axes[1].set(xlabel="sample (color: true subspace)", ylabel="cluster")
