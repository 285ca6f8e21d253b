"""L1 with bounds: no gauge any more, so that its maps and its conjugate have their own oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from atomlearn import designs, losses, norms, paths, problem, solve
from atomlearn.core import ArrayScores
from atomlearn.norms import L1
from atomlearn.problem import prove
from tests.oracles.sums import solve_sum

FORMS = ("penalized", "squared", "constrained")


def bounded(seed, size=8):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.3, 3.0, size)
    weights[rng.random(size) < 0.15] = np.inf
    lower = np.where(rng.random(size) < 0.6, -rng.uniform(0.0, 1.0, size), -np.inf)
    upper = np.where(rng.random(size) < 0.6, rng.uniform(0.0, 1.0, size), np.inf)
    lower[rng.random(size) < 0.15] = 0.0
    return L1(weights, lower, upper), weights, lower, upper


def penalty(form, amount):
    """h(gauge), with the ball of the constrained form as a steep wall."""
    if form == "penalized":
        return lambda gauge: amount * gauge
    return lambda gauge: 0.5 * amount * gauge**2


def one_by_one(v, theta, weights, lower, upper):
    """argmin 1/2 (x - v)^2 + theta weight |x| over each interval: by its candidates."""
    result = np.zeros_like(v)
    for j, (target, low, high) in enumerate(zip(v, lower, upper, strict=True)):
        if np.isinf(weights[j]):
            continue
        step = theta * weights[j]
        candidates = [0.0, low, high, target - step, target + step]
        candidates = [x for x in candidates if np.isfinite(x) and low <= x <= high]
        costs = [0.5 * (x - target) ** 2 + step * abs(x) for x in candidates]
        result[j] = candidates[int(np.argmin(costs))]
    return result


@pytest.mark.parametrize("form", FORMS)
def test_proximal_maps_are_those_of_each_coefficient(form):
    n_inside = 0
    for seed in range(30):
        norm, weights, lower, upper = bounded(seed)
        rng = np.random.default_rng(seed + 100)
        v, amount = 2.0 * rng.standard_normal(8), float(rng.uniform(0.1, 2.0))
        if form == "constrained" and seed % 3 == 0:
            amount = 100.0
        found = norm.prox_point(v, amount, form)
        assert_allclose(found.gauge, norm.value(found.point), rtol=1e-12)
        theta = {"penalized": amount, "squared": amount * found.gauge}.get(form)
        if theta is None:
            assert found.gauge <= amount * (1 + 1e-12)
            inside = one_by_one(v, 0.0, weights, lower, upper)
            if norm.value(inside) <= amount:
                assert_allclose(found.point, inside)
                n_inside += 1
                continue
            free = (found.point != 0) & (found.point > lower) & (found.point < upper)
            if not free.any():
                continue
            theta = float(((np.abs(v) - np.abs(found.point)) / weights)[free].mean())
        assert_allclose(found.point, one_by_one(v, theta, weights, lower, upper), atol=1e-10)
    assert (n_inside > 0) == (form == "constrained")


@pytest.mark.parametrize("form", FORMS)
def test_jacobians_are_derivatives(form):
    checked = 0
    for seed in range(30):
        norm, *_ = bounded(seed)
        v = 2.0 * np.random.default_rng(seed + 200).standard_normal(8)
        dense = norm.prox_point(v, 0.7, form).jacobian().dense()
        step = 1e-6
        moves = step * np.eye(8)
        ahead = np.array([norm.prox_point(v + move, 0.7, form).point for move in moves])
        behind = np.array([norm.prox_point(v - move, 0.7, form).point for move in moves])
        kinks = [
            np.abs(norm.prox_point(v + move, 0.7, form).jacobian().dense() - dense).max() > 1e-6
            for move in (*moves, *-moves)
        ]
        if not any(kinks):
            checked += 1
            assert_allclose((ahead - behind) / (2 * step), dense, atol=1e-7)
    assert checked > 20


@pytest.mark.parametrize("form", FORMS)
def test_the_conjugate_is_the_supremum(form):
    """sup over the box of <z, w> - h(gauge(w)), by a solver that knows nothing of ours."""
    cp = pytest.importorskip("cvxpy")
    for seed in range(12):
        norm, weights, lower, upper = bounded(seed)
        weights = np.where(np.isinf(weights), 1e3, weights)
        norm = L1(weights, lower, upper)
        rng = np.random.default_rng(seed + 300)
        z, amount = 1.5 * rng.standard_normal(8), float(rng.uniform(0.5, 2.0))
        if form == "penalized":  # finite only where the unbounded sides are feasible
            free = np.where(z > 0, np.isinf(upper), np.isinf(lower))
            z = np.where(free, np.clip(z, -amount * weights, amount * weights), z)
        regularizer = problem.Regularizer(norm, form, amount)
        excess = norm.excess(ArrayScores(z))
        polar = norm.polar(ArrayScores(z)) if excess is None else excess.polar
        found = regularizer.conjugate(polar, 1e9, excess)
        w, size = cp.Variable(8), cp.Variable()
        gauge = weights @ cp.abs(w)
        bounds = [w[np.isfinite(lower)] >= lower[np.isfinite(lower)]]
        bounds += [w[np.isfinite(upper)] <= upper[np.isfinite(upper)], gauge <= size]
        cost = {"penalized": amount * size, "squared": 0.5 * amount * cp.square(size)}
        if form == "constrained":
            bounds.append(size <= amount)
        program = cp.Problem(cp.Maximize(z @ w - cost.get(form, 0.0)), bounds)
        program.solve(solver="CLARABEL")
        assert_allclose(found, program.value, atol=1e-6)


def test_logistic_with_bounds_against_scipy():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 6))
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(50) > 0, 1.0, -1.0)
    lower, upper, weights = 0.0, 0.6, np.array([1.0, 2.0, 1.0, 0.5, 1.0, 1.0])
    result = solve_sum(X, y, loss="logistic", norm=L1(weights, lower, upper), level=1.0, tol=1e-9)

    def objective(w):
        return np.logaddexp(0.0, -y * (X @ w)).sum() + weights @ w

    oracle = minimize(objective, np.full(6, 0.1), bounds=[(0.0, 0.6)] * 6, tol=1e-12)
    assert result.objective <= oracle.fun + 1e-9
    assert_allclose(result.coef, oracle.x, atol=1e-4)


def test_weight_zero_is_unpenalized_and_infinity_left_out():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    weights = np.array([0.0, 1.0, np.inf, 1.0, 0.0, 2.0])
    result = solve_sum(X, y, norm=L1(weights), level=1.0, fit_intercept=True, tol=1e-9)
    other = solve_sum(
        X[:, [0, 1, 3, 4, 5]],
        y,
        norm=L1([1.0, 1.0, 1.0, 1.0, 2.0]),
        level=1.0,
        fit_intercept=True,
        unpenalized=[0, 3],
        tol=1e-9,
    )
    assert result.coef[2] == 0.0
    assert_allclose(np.delete(result.coef, 2), other.coef, atol=1e-7)


def test_bad_parameters():
    X, y = np.eye(3), np.ones(3)
    for norm, message in (
        (L1(-1.0), "weights must be >= 0"),
        (L1(lower=0.5), "bounds must hold 0"),
        (L1(upper=[1.0, -1.0, 1.0]), "bounds must hold 0"),
        (L1(weights=0.0, lower=0.0), "a bound on one side only"),
        (norms.Nonnegative(L1(upper=1.0)), "Nonnegative needs a norm"),
        (norms.Nonnegative(L1([0.0, 1.0, 1.0])), "free, and of either sign"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            solve_sum(X, y, norm=norm, level=1.0)


def test_gaps_of_any_point_hold_with_bounds_that_bind():
    """Dual points are scaled for the sides without bounds; what the others cost counts, too."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 4))
    y = X @ np.array([2.0, 9.0, -9.0, 1.0]) + rng.standard_normal(30)
    lower, upper = np.array([-np.inf, 0.0, -2.0, -np.inf]), np.array([np.inf, 3.0, 0.0, np.inf])
    norm = L1(None, lower, upper)
    best = solve_sum(X, y, norm=norm, level=2.0, tol=1e-11)
    regularizer = problem.Regularizer(norm, "penalized", 2.0)
    task = problem.Problem.build(designs.as_design(X), y, losses.Squared(), regularizer)
    scaled = 0
    for size in np.geomspace(1e-4, 1.0, 12):
        w = best.coef + size * rng.standard_normal(4) * np.isinf(lower)
        certificate = prove(task, None, w, X @ w).certificate
        left = certificate.objective - best.objective
        assert certificate.gap >= left - 1e-8
        v = y - X @ w
        scores = X.T @ v
        polar = float(np.abs(scores[[0, 3]]).max())
        if polar > 2.0:  # by hand: the dual point scaled until what has no bound is feasible
            scaled += 1
            share = 2.0 / polar
            beyond = np.maximum(share * np.array([scores[1], -scores[2]]) - 2.0, 0.0)
            dual = share * float(v @ y) - 0.5 * share**2 * float(v @ v) - beyond @ [3.0, 2.0]
            assert certificate.gap <= (certificate.objective - dual) * (1 + 1e-9) + 1e-9
    assert scaled > 5


@pytest.mark.parametrize(
    "bounds", [([0.5, -1.0], [1.0, 1.0]), ([-1.0, -1.0], [1.0, -0.5]), ([1.0, 1.0], [2.0, 2.0])]
)
def test_one_bound_on_the_wrong_side_of_zero_is_enough_to_be_refused(bounds):
    with pytest.raises(ValueError, match="bounds must hold 0"):
        solve_sum(np.eye(2), np.ones(2), norm=L1(None, *map(np.array, bounds)), level=0.1)


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.1},
        {"alpha": 0.1, "form": "squared"},
        {"form": "constrained", "radius": 0.2},
        {"alpha": 0.05, "loss": "logistic"},
    ],
    ids=lambda options: "-".join(options),
)
def test_columns_of_weight_zero_have_bounds(options: dict[str, Any]) -> None:
    """Column 0 is at its bound, column 7 at 0, and column 1 is free."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X[:, :3] @ [2.0, -1.0, 0.5] + 0.3 * rng.standard_normal(60)
    weights = np.where(np.isin(np.arange(8), [0, 1, 7]), 0.0, 1.0)
    lower = np.array([-1.0, *[-np.inf] * 6, 0.0])
    upper = np.array([1.0, *[np.inf] * 6, 100.0])
    w, b = cp.Variable(8), cp.Variable()
    loss = cp.sum_squares(y - X @ w - b) / 120
    if "loss" in options:
        y = np.where(y > np.median(y), 1.0, -1.0)
        loss = cp.sum(cp.logistic(-cp.multiply(y, X @ w + b))) / 60
    limits = [w[0] <= 1, w[0] >= -1, w[7] >= 0, w[7] <= 100]
    size = weights @ cp.abs(w)
    form, alpha = options.get("form", "penalized"), options.get("alpha", 0.0)
    if form == "constrained":
        limits.append(size <= options["radius"])
    penalty = size if form == "penalized" else cp.square(size) / 2
    model = cp.Problem(cp.Minimize(loss + alpha * penalty), limits)
    model.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    norm = L1(weights=weights, lower=lower, upper=upper)
    found = solve(X, y, norm=norm, tol=1e-9, **options)
    assert found.converged
    assert_allclose(found.objective, model.value, rtol=1e-8)
    assert_allclose(found.coef, w.value, atol=1e-6)
    with pytest.raises(ValueError, match="give alphas="):
        paths.path(X, 2 * X[:, 0], norm=norm)
    path = paths.path(X, 2 * X[:, 0], norm=norm, alphas=[0.1, 0.05])
    assert max(path.relative_gaps) <= 1e-6
