"""[T] section 6: products that are never stored, kernels of inputs, all searched exactly."""

import numpy as np

from atomlearn import FeatureGenerator

rng = np.random.default_rng(0)
X = rng.uniform(0, 1, (400, 300))
y = np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.5) + 0.2 * (X[:, 2] - 0.5) > 0, 1, -1)
for features in ("linear", "polynomial", "intersection", "additive_gaussian"):
    model = FeatureGenerator(6, batch=2, features=features, standardize=True).fit(X, y)
    print(features, model.selected_names_, model.score(X, y))
scaled = FeatureGenerator(
    6, batch=2, features="polynomial", gamma=4.0, r=0.5, standardize=True
).fit(X, y)
print(scaled.selected_names_)
