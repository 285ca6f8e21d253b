"""[T] section 6 at degree 3: a product of three inputs found among all, and what is refused."""

import numpy as np

from atomlearn import designs, norms, solve
from atomlearn.solvers import FeatureGeneration

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 40))
y = np.sign(X[:, 3] * X[:, 8] * X[:, 21] + 0.1 * rng.standard_normal(300))
design = designs.Cubic(X, gamma=1.0, r=1.0)
problem = {"loss": "squared_hinge", "norm": norms.KSupport(2), "form": "squared", "level": 0.1}
fit = solve(design, y, solver=FeatureGeneration(n_features=4), **problem)
print(design.shape, [design.triple(int(column)) for column in fit.columns])
try:
    designs.Cubic(np.ones((2000, 2000)))
except ValueError as refused:
    print(refused)
