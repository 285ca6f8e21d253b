"""The conversions of `coming_from`: minima of glmnet's published objective, found by CVXPY.

Friedman, Hastie, Tibshirani, JSS 33(1), 2010, and the help of ``glmnet``: weights are divided by
their sum, and factors of the penalty multiplied until their sum is the number of columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import norms
from tests.oracles.sums import solve_sum

cp = pytest.importorskip("cvxpy")

LAMBDA = 0.06
#: The loss of ours, and of CVXPY for the target and Xw + b.
FAMILIES: dict[str, tuple[str, Any]] = {
    "gaussian": ("squared", lambda y, eta: 0.5 * cp.square(y - eta)),
    "binomial": ("logistic", lambda y, eta: cp.logistic(eta) - cp.multiply(y, eta)),
    "poisson": ("poisson", lambda y, eta: cp.exp(eta) - cp.multiply(y, eta)),
}


def _target(family: str, score: Any, rng: Any) -> Any:
    if family == "gaussian":
        y = score + rng.standard_normal(score.size)
        return y / y.std()  # glmnet does so first, and would mix otherwise differently
    if family == "binomial":
        return (rng.random(score.size) < 1 / (1 + np.exp(-score))).astype(float)
    return rng.poisson(np.exp(np.clip(score, -3, 2))).astype(float)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mixing", [0.7, 1.0])
def test_coefficients_are_those_of_glmnets_objective(family: str, mixing: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6)) * [1, 2, 0.5, 1, 1, 3]
    y = _target(family, X @ [0.8, -0.3, 0, 0, 0.4, 0.1], rng)
    weight, ours = rng.uniform(0.5, 2, 80), FAMILIES[family][0]
    factor = np.array([1.0, 2, 0, 1, 0.5, 1])
    factor *= 6 / factor.sum()
    # Their factors scale the ridge, too, and our weights the norm alone: over columns divided by
    # the roots of the factors, weights of these roots scale both.
    root = np.sqrt(np.where(factor > 0, factor, 1.0))
    # standardize = TRUE: the penalty is of the coefficients of scaled columns.
    spread = np.sqrt(np.average((X - np.average(X, 0, weight)) ** 2, 0, weight))
    b, b0 = cp.Variable(6), cp.Variable()
    scaled = cp.multiply(spread, b)
    penalty = mixing * cp.abs(scaled) + (1 - mixing) / 2 * cp.square(scaled)
    mean = weight / weight.sum() @ FAMILIES[family][1](y, X @ b + b0)
    problem = cp.Problem(cp.Minimize(mean + LAMBDA * factor @ penalty))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    n = weight.sum()
    found = solve_sum(
        (X - np.average(X, 0, weight)) / (spread * root),
        y,
        loss=ours,
        norm=norms.L1(weights=np.sqrt(factor)),
        level=n * LAMBDA * mixing,
        tau=n * LAMBDA * (1 - mixing),
        fit_intercept=True,
        sample_weight=weight,
        tol=1e-11,
    )
    assert_allclose(np.asarray(found.coef) / (spread * root), b.value, atol=1e-5)
