"""[T] 2.3 and 4.3: groups, groups that overlap, and a tree searched with pruning."""

import numpy as np

from atomlearn import FeatureGenerator, norms

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 64))
y = np.where(X[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(300) > 0, 1, -1)
disjoint = np.arange(64) // 4
overlapping = [list(range(start, start + 6)) for start in range(0, 60, 4)]
tree = norms.Trees([list(range(s, s + n)) for n in (32, 8, 4) for s in range(0, 64, n)])
for groups in (disjoint, overlapping, tree):
    model = FeatureGenerator(2, batch=1, groups=groups, standardize=True).fit(X, y)
    print(model.n_selected_, model.selected_, model.gap_)
