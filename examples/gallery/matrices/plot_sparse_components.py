"""
Sparse components, found together
=================================

``SparsePCA`` writes the covariance as a sum of few components with few non-zeros each, all found
together rather than one after the other.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import SparsePCA

rng = np.random.default_rng(0)
truth = np.zeros((3, 18))
truth[0, :5], truth[1, 4:9], truth[2, 12:17] = 1.0, 1.0, 1.0
X = rng.standard_normal((400, 3)) @ truth + 0.4 * rng.standard_normal((400, 18))

model = SparsePCA(n_features=5, n_components=3).fit(X)
print(model.status_.name, "proved gap", model.gap_, "as far as the search goes", model.search_gap_)
_, _, dense = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)

fig, axes = plt.subplots(1, 3, figsize=(9, 2.2), layout="constrained")
pictures = [("truth", truth), ("sparse components", model.components_), ("PCA", dense[:3])]
for ax, (title, matrix) in zip(axes, pictures, strict=True):
    ax.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    ax.set(title=title, yticks=[])
