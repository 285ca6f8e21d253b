"""Robust losses, bounds and signs against quadratic, linear and general programs of others."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from atomlearn import norms
from atomlearn.interfaces import Loss, Norm
from atomlearn.losses import Huber, Quantile, as_loss
from atomlearn.testing.gauges import gauge_model
from atomlearn.testing.loss_oracles import targets_of
from tests.oracles.covering import in_turn
from tests.oracles.sums import solve_sum

NAMES = ("squared", "logistic", "squared_hinge", "gamma", "negative_binomial")
GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7]]
ALL_NORMS = {
    "l1": norms.L1(),
    "l2": norms.L2(),
    "groups": norms.Groups(GROUPS),
    "ksupport": norms.KSupport(3),
    "ksupport of groups": norms.KSupport(2, GROUPS),
}


def table(seed: int, n: int = 50, p: int = 8) -> tuple[Any, Any]:
    """Return X and a signal of three columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, 0.6 * X[:, 0] - 0.5 * X[:, 3] + 0.4 * X[:, 6]


@pytest.mark.parametrize(("delta", "intercept"), [(0.3, False), (1.0, True)])
def test_huber_is_its_quadratic_program(delta: float, intercept: bool) -> None:
    """min 1/2 ||u||^2 + delta sum(a + b) + level sum(c + d), X(c - d) + b0 + u + a - b = y."""
    cp = importlib.import_module("cvxpy")
    X, z = table(0)
    y = z + np.random.default_rng(1).standard_t(2, 50)
    level = 2.0
    fit = solve_sum(X, y, loss=Huber(delta), level=level, fit_intercept=intercept, tol=1e-10)
    u, a, b = cp.Variable(50), cp.Variable(50, nonneg=True), cp.Variable(50, nonneg=True)
    c, d = cp.Variable(8, nonneg=True), cp.Variable(8, nonneg=True)
    b0 = cp.Variable() if intercept else 0.0
    cost = 0.5 * cp.sum_squares(u) + delta * cp.sum(a + b) + level * cp.sum(c + d)
    program = cp.Problem(cp.Minimize(cost), [X @ (c - d) + b0 + u + a - b == y])
    program.solve(solver="CLARABEL")
    assert fit.converged
    assert fit.objective == pytest.approx(float(program.value), rel=1e-7)
    assert_allclose(fit.coef, c.value - d.value, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_are_those_of_scipy(name: str) -> None:
    X, z = table(2)
    loss = as_loss(name)
    y = targets_of(loss, z + 0.5 * np.random.default_rng(3).standard_normal(50))
    assert_bounds_are_those_of_scipy(X, loss.check_target(y), loss)


def assert_bounds_are_those_of_scipy(X: Any, y: Any, loss: Loss) -> None:
    """Compare l1 with bounds on both sides with L-BFGS-B over w+ and w-."""
    lower = np.array([-1.0, -0.1, 0.0, -0.2, -1.0, -0.05, 0.0, -1.0])
    upper = np.array([0.2, 0.1, 1.0, 1.0, 0.0, 0.5, 0.3, 1.0])
    weights, level, s = np.array([1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 3.0, 1.0]), 1.0, np.ones(50)
    norm = norms.L1(weights, lower, upper)
    fit = solve_sum(X, y, loss=loss, norm=norm, level=level, tol=1e-10)

    def objective(both: Any) -> Any:
        prediction = X @ (both[:8] - both[8:])
        slope = X.T @ loss.gradient(y, prediction, s)
        value = loss.value(y, prediction, s) + level * weights @ (both[:8] + both[8:])
        return value, np.concatenate([slope + level * weights, level * weights - slope])

    sides = [(0.0, high) for high in upper] + [(0.0, -low) for low in lower]
    settings = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    other = minimize(
        objective, np.zeros(16), jac=True, bounds=sides, method="L-BFGS-B", options=settings
    )
    assert fit.converged
    assert fit.objective == pytest.approx(other.fun, rel=1e-7)
    assert np.all((fit.coef >= lower - 1e-12) & (fit.coef <= upper + 1e-12))
    assert_allclose(fit.coef, other.x[:8] - other.x[8:], atol=2e-3)


@pytest.mark.parametrize(
    ("norm", "form", "loss"),
    in_turn(ALL_NORMS, ["penalized", "squared", "constrained"], ["squared", "poisson"]),
)
def test_signs_of_every_norm_are_those_of_cvxpy(loss: str, norm: str, form: Any) -> None:
    assert_signs_are_those_of_cvxpy(loss, ALL_NORMS[norm], form)


def assert_signs_are_those_of_cvxpy(loss: str, norm: Norm, form: Any) -> None:
    cp = importlib.import_module("cvxpy")
    X, z = table(4)
    rng = np.random.default_rng(5)
    counts = rng.poisson(np.exp(z)).astype(float)
    y = counts if loss == "poisson" else z + 0.5 * rng.standard_normal(50)
    positive = norms.Nonnegative(norm)
    amount: Any = {"radius": 0.7} if form == "constrained" else {"level": 3.0}
    fit = solve_sum(X, y, loss=loss, norm=positive, form=form, tol=1e-8, max_iter=5000, **amount)
    w = cp.Variable(8)
    cost = 0.5 * cp.sum_squares(X @ w - y)
    if loss == "poisson":
        some = counts > 0
        constant = float((counts[some] * np.log(counts[some])).sum() - counts.sum())
        cost = cp.sum(cp.exp(X @ w) - cp.multiply(y, X @ w)) + constant
    gauge, sides = gauge_model(cp, positive, w)
    if form == "constrained":
        sides.append(gauge <= 0.7)
    else:
        cost += 3.0 * gauge if form == "penalized" else 1.5 * cp.square(gauge)
    best = float(cp.Problem(cp.Minimize(cost), sides).solve(solver="CLARABEL"))
    assert fit.converged
    assert fit.coef.min() >= 0.0
    assert fit.objective == pytest.approx(best, rel=2e-6)
    assert fit.objective - fit.gap <= best * (1 + 2e-6)


@pytest.mark.parametrize(("norm", "form"), [("groups", "penalized"), ("ksupport", "squared")])
def test_quantiles_beside_free_columns_under_other_norms(norm: str, form: Any) -> None:
    assert_quantiles_are_those_of_cvxpy(ALL_NORMS[norm], form)


def assert_quantiles_are_those_of_cvxpy(norm: Norm, form: Any) -> None:
    cp = importlib.import_module("cvxpy")
    X, z = table(6)
    y = 2.0 + z + np.random.default_rng(7).standard_t(2, 50)
    q, level, free = 0.7, 2.0, [0, 4]
    rest = [j for j in range(8) if j not in free]
    settings: Any = {"loss": Quantile(q), "level": level, "fit_intercept": True, "tol": 1e-6}
    fit = solve_sum(X, y, norm=norm, form=form, unpenalized=free, **settings)
    w, u, b = cp.Variable(8), cp.Variable(8), cp.Variable()
    residual = y - X @ w - b
    gauge, sides = gauge_model(cp, norm, u)
    penalty = level * gauge if form == "penalized" else 0.5 * level * cp.square(gauge)
    cost = cp.sum(cp.maximum(q * residual, (q - 1) * residual)) + penalty
    # The penalty is that of w with zeros at the free columns.
    program = cp.Problem(cp.Minimize(cost), [*sides, u[rest] == w[rest], u[free] == 0])
    best = float(program.solve(solver="CLARABEL"))
    assert fit.converged
    assert fit.objective == pytest.approx(best, rel=1e-5)
    assert fit.objective - fit.gap <= best * (1 + 1e-6)


def test_gaps_of_losses_with_kinks_hold_with_a_ridge():
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 4))
    y = X[:, 0] + rng.normal(size=40)
    w = cp.Variable(4)
    cost = 0.5 * cp.norm1(y - X @ w) + 0.5 * cp.norm1(w) + 2.5 * cp.sum_squares(w)
    best = cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL")
    result = solve_sum(X, y, loss="quantile", level=0.5, tau=5.0, tol=1e-8)
    assert result.converged
    assert_allclose(result.objective, best, rtol=1e-6)
    for record in result.history:
        assert record.gap >= record.objective - best - 1e-6
