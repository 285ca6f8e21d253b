"""[T] section 6 at degree 3 and with the general intersection kernel, by FeatureGenerator."""

import numpy as np

from atomlearn import FeatureGenerator, designs

rng = np.random.default_rng(0)
X, new = rng.standard_normal((2, 400, 20))
cubic = FeatureGenerator(4, batch=2, features="cubic", loss="squared_hinge", standardize=True)
cubic.fit(X, np.sign(X[:, 3] * X[:, 8] * X[:, 11] + 0.1 * X[:, 0]))
print(cubic.selected_names_)
print(np.mean(cubic.predict(new) == np.sign(new[:, 3] * new[:, 8] * new[:, 11])))
for a in (0.5, 1.0, 2.0):  # k(x, z) = sum_j min(|x_j|^a, |z_j|^a)
    kernel = ("intersection", {"exponent": a})
    model = FeatureGenerator(2, batch=1, features=kernel)
    model.fit(X, np.sign(abs(X[:, 2]) + abs(X[:, 5]) - 1.6))
    truth = np.sign(abs(new[:, 2]) + abs(new[:, 5]) - 1.6)
    print(a, model.selected_, model.score(new, truth))
try:
    designs.Cubic(np.ones((2000, 2000)))
except ValueError as refused:
    print(refused)
