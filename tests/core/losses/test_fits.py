"""Fits of every loss of numbers against an independent optimum, whatever norm, form and solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from atomlearn import norms, solvers
from atomlearn.core import Form, Problem, Result
from atomlearn.interfaces import Loss, Norm, Solver
from atomlearn.losses import Huber, Poisson, Quantile, as_loss
from atomlearn.testing.problems import FORMS, Case, cvxpy_optimum
from tests.oracles.covering import in_turn
from tests.oracles.sums import solve_sum

NAMES = ("poisson", "gamma", "tweedie", "negative_binomial", "huber", "quantile")
NORMS = {
    "l1": norms.L1(),
    "groups": norms.Groups([[0, 1, 2], [3, 4, 5], [6, 7], [8, 9, 10, 11]]),
    "ksupport": norms.KSupport(3),
}


def value_at(problem: Problem, result: Result) -> float:
    """Return the objective at the point that was given back, computed from nothing else."""
    prediction = problem.design.predict(result.coef) + result.intercept
    gauge = problem.regularizer.norm.value(result.coef)
    ridge = 0.5 * problem.tau * float(result.coef @ result.coef)
    smooth = problem.loss.value(problem.y, prediction, problem.weight)
    return smooth + ridge + problem.regularizer.value(gauge)


@pytest.mark.parametrize(("loss", "form", "norm"), in_turn(NAMES, FORMS, NORMS))
def test_proved_gaps_hold_against_another_solver(loss: str, form: Form, norm: str) -> None:
    seed = 1 + len(loss) + len(form) + len(norm)
    odd = seed % 2 == 1
    case = Case(loss, form, odd, not odd, 0.3 * odd, 0.1, n_features=12, seed=seed)
    problem = case.problem(NORMS[norm])
    stop = solvers.stopping.RelativeGap(1e-8) | solvers.stopping.Iterations(200)
    result = solvers.run(problem, solvers.ColumnGeneration(tol=1e-8), stop)
    assert result.converged
    assert value_at(problem, result) == pytest.approx(result.objective, rel=1e-9)
    best = cvxpy_optimum(problem, case.data()[0])
    slack = 2e-6 * max(abs(best), 1e-3)
    assert result.objective - result.gap - slack <= best <= result.objective + slack


@pytest.mark.parametrize("loss", ["poisson", "quantile"])
@pytest.mark.parametrize(
    "solver",
    [solvers.AtomGeneration(), solvers.ColumnGeneration(batch=1)],
    ids=lambda solver: type(solver).__name__,
)
def test_other_solvers_prove_the_same(loss: str, solver: Solver) -> None:
    assert_proves_the_optimum(loss, solver)


def assert_proves_the_optimum(loss: str, solver: Solver) -> None:
    case = Case(loss, "penalized", True, seed=3)
    problem = case.problem(norms.L1())
    stop = solvers.stopping.RelativeGap(1e-5) | solvers.stopping.Iterations(3000)
    result = solvers.run(problem, solver, stop)
    assert result.converged
    best = cvxpy_optimum(problem, case.data()[0])
    assert result.objective == pytest.approx(best, rel=3e-5)


@pytest.mark.parametrize("q", [0.1, 0.8])
def test_quantiles_are_their_linear_program(q: float) -> None:
    rng = np.random.default_rng(0)
    X, level = rng.standard_normal((60, 20)), 2.0
    y = 1e4 + X[:, 0] + rng.standard_t(2, 60)
    s = rng.integers(0, 3, 60).astype(float)
    found = solve_sum(
        X, y, loss=Quantile(q), level=level, fit_intercept=True, sample_weight=s, tol=1e-9
    )
    # Variables: w+, w-, b+, b-, the parts of the residual above and below 0.
    ones = np.ones((60, 1))
    equal = np.hstack([X, -X, ones, -ones, np.eye(60), -np.eye(60)])
    cost = np.concatenate([np.full(40, level), [0, 0], q * s, (1 - q) * s])
    program = linprog(cost, A_eq=equal, b_eq=y, method="highs")
    assert found.converged
    assert found.objective == pytest.approx(program.fun, rel=1e-8)
    assert found.passes < 40


@pytest.mark.parametrize("loss", [Poisson(), as_loss("tweedie"), as_loss("negative_binomial")])
def test_nothing_was_counted(loss: Loss) -> None:
    """The best intercept is -infinity: what is given back has a mean that is 0 but for rounding."""
    X = np.random.default_rng(0).standard_normal((20, 5))
    fit = solve_sum(X, np.zeros(20), loss=loss, level=1.0, fit_intercept=True)
    assert fit.converged
    assert not fit.columns.size
    assert np.all(loss.mean(fit.predict(X)) < 1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_large_counts_overflow_nowhere(intercept: bool) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 30))
    y = np.floor(np.exp(X[:, 0] * 5.0 + 8.0))
    # Counts near 1e9: predictions as floats leave slopes of 1e-5, and a gap of 3e-6.
    fit = solve_sum(X, y, loss="poisson", level=10.0, fit_intercept=intercept, tol=1e-5)
    assert fit.converged
    assert 0 in fit.columns
    assert np.isfinite(fit.objective)


def test_a_scale_of_targets_moves_the_intercept_alone() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 10))
    y = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    fits = [
        solve_sum(X, c * y, loss="poisson", level=2.0 * c, fit_intercept=True, tol=1e-10)
        for c in (1, 1e6)
    ]
    np.testing.assert_allclose(fits[0].coef, fits[1].coef, atol=1e-6)
    assert fits[1].intercept - fits[0].intercept == pytest.approx(np.log(1e6), abs=1e-6)


def test_huber_of_a_wide_bend_is_least_squares() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 10))
    y = X[:, 0] + rng.standard_normal(40)
    wide = solve_sum(X, y, loss=Huber(1e3), level=1.0, fit_intercept=True, tol=1e-10)
    squares = solve_sum(X, y, loss="squared", level=1.0, fit_intercept=True, tol=1e-10)
    np.testing.assert_allclose(wide.coef, squares.coef, atol=1e-6)


def test_an_offset_moves_the_quantile() -> None:
    rng = np.random.default_rng(4)
    X, y, o = rng.standard_normal((50, 15)), rng.standard_t(2, 50), rng.standard_normal(50)
    moved = solve_sum(X, y, loss="quantile", level=1.5, fit_intercept=True, offset=o, tol=1e-9)
    plain = solve_sum(X, y - o, loss="quantile", level=1.5, fit_intercept=True, tol=1e-9)
    assert moved.objective == pytest.approx(plain.objective, rel=1e-8)


@pytest.mark.parametrize(("q", "intercept"), [(0.5, True), (0.9, False)])
def test_quantiles_beside_free_columns_are_those_of_the_linear_program(
    q: float, intercept: bool
) -> None:
    rng = np.random.default_rng(5)
    n, p, level = 40, 8, 1.5
    X = rng.standard_normal((n, p))
    y = 3.0 + 2.0 * X[:, 0] - X[:, 3] + rng.standard_t(2, n)
    fit = solve_sum(
        X, y, loss=Quantile(q), level=level, fit_intercept=intercept, unpenalized=[0, 1], tol=1e-8
    )
    # w = a - b, b0 free, residual = r - t, all of a, b, r, t >= 0.
    price = np.full(p, level)
    price[:2] = 0.0
    cost = np.concatenate([price, price, [0.0], np.full(n, q), np.full(n, 1.0 - q)])
    A = np.hstack([X, -X, np.full((n, 1), float(intercept)), np.eye(n), -np.eye(n)])
    sides = [(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * (2 * n)
    best = linprog(cost, A_eq=A, b_eq=y, bounds=sides, method="highs").fun
    assert fit.converged
    assert best <= fit.objective * (1 + 1e-9)
    assert fit.objective - fit.gap <= best * (1 + 1e-9)
    residual = y - X @ fit.coef - fit.intercept
    value = np.maximum(q * residual, (q - 1) * residual).sum() + level * np.abs(fit.coef[2:]).sum()
    assert fit.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    "norm", [norms.L2(), norms.Groups([[4 * g + i for i in range(4)] for g in range(10)])]
)
def test_targets_far_beyond_the_bend_are_fitted(norm: Norm) -> None:
    """All residuals are on the straight parts at first, where Newton's method sees nothing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 40))
    y = 1e3 * X[:, :5].sum(axis=1)
    result = solve_sum(
        X, y, loss="huber", norm=norm, level=3.0, fit_intercept=True, tol=1e-8, time_limit=20
    )
    assert result.status.is_converged
