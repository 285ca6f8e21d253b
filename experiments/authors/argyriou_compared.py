"""[A] section 1: the pairwise elastic net, the trace lasso and OSCAR beside the k-support norm."""

import numpy as np

from atomlearn import norms
from experiments.rivals import PairwiseElasticNet, TraceLasso
from tests.oracles.sums import solve_sum

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 6)) + rng.standard_normal((40, 1))
X /= np.linalg.norm(X, axis=0)
y = X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(40)
alike = np.full((6, 6), 0.5) + 0.5 * np.eye(6)
oscar = norms.OWL(1.0 + 0.1 * np.arange(5, -1, -1.0))
fits = {
    "k-support": solve_sum(X, y, norm=norms.KSupport(3), form="squared", level=0.1),
    "PEN": solve_sum(X, y, norm=PairwiseElasticNet(alike), form="squared", level=0.1),
    "trace lasso": solve_sum(X, y, norm=TraceLasso(X), level=0.1, tol=1e-3),
    "OSCAR": solve_sum(X, y, norm=oscar, level=0.1),
}
for name, fit in fits.items():
    print(name, fit.coef.round(2), fit.relative_gap)
