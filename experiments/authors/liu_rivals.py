"""[L] section 4: k-FCFW, FISTA with three proximal maps, ADMM, on one problem, each certified."""

import numpy as np

from atomlearn import norms
from atomlearn.solvers import FISTA, KFCFW
from atomlearn.testing.synthetic import make_k_support_logistic
from experiments.rivals import ADMM
from tests.oracles.sums import solve_sum

data = make_k_support_logistic(100, 5000, 200, rng=0)
problem = {"loss": "logistic", "norm": norms.KSupport(100), "form": "squared", "tau": 1e-3}
for solver in (KFCFW(), FISTA("box_norm"), FISTA("binary_search"), FISTA("two_step"), ADMM()):
    fit = solve_sum(data.X, data.y, solver=solver, level=0.05, tol=1e-3, **problem)
    print(type(solver).__name__, fit.status.name, fit.passes, fit.relative_gap)
assert np.isfinite(fit.objective)
