"""[V] section 3: a quadratic by Q and b alone, Algorithm 2 in its own form, pivots a call."""

import numpy as np

from atomlearn import designs, masters, norms
from atomlearn.solvers import AtomGeneration
from tests.oracles.sums import solve_sum

rng = np.random.default_rng(0)
X = rng.standard_normal((500, 60))
Q, b = X.T @ X, X.T @ (X[:, :10].sum(axis=1))
c, _, _ = masters.ActiveSetQP().minimize(Q, -b)
R, t = designs.from_moments(Q, b)
settings = {"norm": norms.Chains(8), "level": 30.0, "tol": 1e-4}
for solver in (AtomGeneration(), AtomGeneration(warm_start=False), AtomGeneration(prune=False)):
    fit = solve_sum(R, t, solver=solver, **settings)
    print(fit.status.name, fit.state.master_steps / fit.iterations, fit.state.atoms.size)
assert (c >= 0).all()
