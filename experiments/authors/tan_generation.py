"""[T] Algorithm 1: exact and inexact, with a shift, by its own stops, and what is selected."""

from atomlearn import FeatureGenerator, norms
from atomlearn.datasets import make_feature_generation
from atomlearn.solvers import FeatureGeneration
from tests.oracles.sums import solve_sum

data = make_feature_generation(400, 1000, 50, 400, shift=1.0)
problem = {"loss": "squared_hinge", "norm": norms.KSupport(10), "form": "squared", "level": 0.1}
for tolerance in (1e-3, 1e-6):
    machine = FeatureGeneration(max_blocks=5, inner_tol=tolerance)
    fit = solve_sum(data.X, data.y, solver=machine, fit_intercept=True, **problem)
    print(fit.status.name, fit.objective, fit.gap, fit.state.mu, -fit.intercept)
model = FeatureGenerator(50, batch=10, outer_tol=1e-3, max_blocks=10, debias=20.0, standardize=True)
print(model.fit(data.X, data.y).n_selected_, model.score(data.X_test, data.y_test))
