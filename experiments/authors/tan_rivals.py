"""[T] section 8: MKL-FGM in the dual, SDCA, UFO-MKL, FISTA and ACTIVE beside FGM."""

import numpy as np

from atomlearn import norms
from atomlearn.solvers import FISTA, FeatureGeneration
from experiments.rivals import SDCA, UFOMKL, DualMKL, active_groups
from tests.oracles.sums import solve_sum

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 60))
y = np.where(X[:, :6].sum(axis=1) > 0, 1, -1)
fgm = {"norm": norms.KSupport(5), "form": "squared", "level": 0.1, "loss": "squared_hinge"}
for machine in (FeatureGeneration(max_blocks=3), FeatureGeneration(DualMKL(), max_blocks=3)):
    print("FGM", solve_sum(X, y, solver=machine, **fgm).columns.size)
group = {"norm": norms.Groups(np.arange(60) // 5), "level": 10.0, "loss": "logistic", "tol": 1e-2}
for solver in (FISTA(), active_groups(), SDCA(), UFOMKL()):
    fit = solve_sum(X, y, solver=solver, tau=1.0, max_iter=200, **group)
    print(type(solver).__name__, fit.status.name, fit.columns.size, fit.relative_gap)
