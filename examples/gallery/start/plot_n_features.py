"""
Exactly so many features
========================

``FeatureGenerator`` selects by generation: the data is asked for the best columns, all weights
are fitted again, and so on until there are as many as asked for. It predicts, and it is a
selector too.
"""

import matplotlib.pyplot as plt
import numpy as np

from atomlearn import FeatureGenerator, datasets

data = datasets.make_feature_generation(n=1000, p=10_000, n_true=30, n_test=1000, rng=0)
y, y_test = np.sign(data.y), np.sign(data.y_test)

sizes = [5, 10, 20, 30, 40, 60]
found, accuracy = [], []
for size in sizes:
    model = FeatureGenerator(n_features=size, batch=2, standardize=True).fit(data.X, y)
    found.append(np.count_nonzero(data.coef[model.get_support(indices=True)]))
    accuracy.append(model.score(data.X_test, y_test))

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
axes[0].plot(sizes, found, "o-")
axes[0].plot(sizes, np.minimum(sizes, 30), ":", color="0.5")
axes[0].set(xlabel="features asked for", ylabel="true ones among them")
axes[1].plot(sizes, accuracy, "o-")
axes[1].set(xlabel="features asked for", ylabel="accuracy on new data")
