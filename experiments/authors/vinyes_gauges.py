"""[V] section 2.1: the atomic sets, each solved by Algorithm 1 with its own certificate."""

import numpy as np

from atomlearn import norms
from atomlearn.solvers import AtomGeneration
from tests.oracles.sums import solve_sum

rng = np.random.default_rng(0)
X = rng.standard_normal((100, 10))
y = X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(100)
sets = [
    norms.L1(), norms.Nonnegative(norms.L1()), norms.Groups([[0, 1], [2, 3]]), norms.Chains(3),
    norms.LatentGroups([[0, 1, 2], [2, 3]]), norms.Hierarchy("weak"), norms.Hierarchy("strong"),
    norms.TraceNorm(shape=(2, 5)), norms.Operators([np.eye(10), np.eye(10)[:4]]),
]  # fmt: skip
for norm in sets:
    fit = solve_sum(X, y, norm=norm, level=5.0, solver=AtomGeneration(), tol=1e-4)
    print(type(norm).__name__, fit.status.name, fit.iterations, fit.relative_gap)
