"""Gaps of solvers over all columns or atoms, where digits cancel, against 60 digits."""

import numpy as np
import pytest

from atomlearn import losses, solvers
from tests.oracles.sums import solve_sum

mp = pytest.importorskip("mpmath")
from tests.certificates.high_precision import Small, exact  # noqa: E402

SOLVERS = (solvers.FISTA, solvers.FrankWolfe, solvers.AtomGeneration)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", SOLVERS)
def test_no_gap_is_refuted_far_from_zero(kind, seed):
    assert_gap_holds_far_from_zero(kind(), seed)


def assert_gap_holds_far_from_zero(solver, seed):
    """Compare the gap of the solver with the objective of a better point, in 60 digits."""
    rng = np.random.default_rng([11, seed])
    offset, scale = 10.0 ** rng.integers(0, 8), 10.0 ** rng.integers(-8, 9)
    X = (rng.standard_normal((8, 3)) + offset * (seed % 3 > 0)) * scale
    intercept = bool(seed % 2)
    y = (X - X.mean(axis=0))[:, 0] / scale + 0.3 * rng.standard_normal(8)
    level = 0.1 * np.abs(X.T @ (y - y.mean() * intercept)).max()
    problem = {"level": level, "fit_intercept": intercept, "time_limit": 0.2}
    found = solve_sum(X, y, tol=1e-9, solver=solver, **problem)
    tight = solve_sum(X, y, tol=1e-12, **problem)
    small = Small(X, y, np.ones(8), losses.as_loss("squared"), "penalized", level, intercept)
    value = small.objective(exact(found.coef), mp.mpf(found.intercept))
    near = exact(tight.coef), mp.mpf(tight.intercept)
    assert value - min(small.objective(*near), small.better(*near)) <= found.gap
