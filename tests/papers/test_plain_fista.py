"""FISTA as published, against its own iterates written in NumPy, its theorem, and the others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn import norms, solve
from atomlearn.designs import as_design
from atomlearn.interfaces import State
from atomlearn.papers.fista import lipschitz_constant
from atomlearn.problem import Problem
from atomlearn.result import Status
from atomlearn.solvers import FISTA, KFCFW, run, stopping
from atomlearn.testing.problems import Case
from atomlearn.testing.solvers import SolverChecks
from atomlearn.testing.synthetic import make_k_support_logistic
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]


class TestFixedStep(SolverChecks):
    solver = FISTA(restart=False, iterations=30)
    gap = 1e-4


class TestBacktracking(SolverChecks):
    solver = FISTA(restart=False, step_size="backtracking", iterations=30)
    gap = 1e-4


def lasso(correlation: float = 0.9) -> tuple[Problem, Array]:
    case = Case("squared", "penalized", strength=0.1, correlation=correlation, seed=7)
    return case.problem(norms.L1()), case.data()[0]


def published(X: Array, y: Array, level: float, L: float, steps: int) -> Array:
    """Return w_1, ..., w_steps of Beck and Teboulle's section 4 for the lasso, from zero."""
    w = z = np.zeros(X.shape[1])
    t, found = 1.0, []
    for _ in range(steps):
        v = z - X.T @ (X @ z - y) / L
        following = np.sign(v) * np.maximum(np.abs(v) - level / L, 0.0)
        turn = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        z = following + (t - 1.0) / turn * (following - w)
        w, t = following, turn
        found.append(w)
    return np.array(found)


def iterates(problem: Problem, solver: FISTA, steps: int) -> list[State]:
    state = solver.start(problem)
    states = []
    for _ in range(steps):
        state = solver.step(problem, state)
        states.append(state)
    return list(states)


def test_the_iterates_are_those_of_the_paper() -> None:
    problem, X = lasso()
    solver = FISTA(restart=False, iterations=1)
    L = lipschitz_constant(problem)
    expected = published(X, problem.y, problem.regularizer.amount, L, 60)
    found = [state.weights for state in iterates(problem, solver, 60)]
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_lipschitz_constant_is_that_of_an_eigendecomposition(
    loss: str, intercept: bool
) -> None:
    case = Case(loss, "squared", intercept, weighted=True, seed=8)  # type: ignore[arg-type]
    problem = case.problem(norms.KSupport(3))
    X, s = case.data()[0], problem.weight
    if intercept:
        X = X - s @ X / s.sum()
    largest = {"squared": 1.0, "logistic": 0.25, "squared_hinge": 1.0}[loss]
    exact = largest * np.linalg.eigvalsh(X.T @ (s[:, None] * X))[-1]
    assert exact * (1 - 1e-9) <= lipschitz_constant(problem) <= 1.011 * exact


@pytest.mark.parametrize(("step_size", "factor"), [("fixed", 1.011), ("backtracking", 2.0)])
def test_the_rate_of_the_theorem_holds_at_every_iterate(step_size: str, factor: float) -> None:
    """F(w_k) - F* <= 2 factor L ||w_0 - w*||^2 / (k + 1)^2 (Beck, Teboulle 2009, theorem 4.4)."""
    problem, X = lasso()
    L = np.linalg.eigvalsh(X.T @ X)[-1]
    best = run(problem, FISTA(), stopping.RelativeGap(1e-12) | stopping.Iterations(2000))
    solver = FISTA(restart=False, step_size=step_size, iterations=1)  # type: ignore[arg-type]
    size = float(best.coef @ best.coef)
    steps = []
    for k, state in enumerate(iterates(problem, solver, 100), 1):
        over = state.certificate.objective - best.objective
        assert over <= 2 * factor * L * size / (k + 1) ** 2 + best.gap
        steps.append(state.iterate.lipschitz)  # type: ignore[attr-defined]
    assert steps == sorted(steps)
    # Backtracking may begin at a constant that it need not raise.
    assert len(set(steps)) == 1 or step_size == "backtracking"


def test_the_momentum_is_dropped_with_restart_only() -> None:
    """t_k+1 = (1 + sqrt(1 + 4 t_k^2)) / 2 at every iterate of the published method."""
    problem, _ = lasso()
    expected = [1.0]
    for _ in range(100):
        expected.append((1.0 + np.sqrt(1.0 + 4.0 * expected[-1] ** 2)) / 2.0)
    found = {
        restart: [
            state.iterate.momentum  # type: ignore[attr-defined]
            for state in iterates(problem, FISTA(restart=restart, iterations=1), 100)
        ]
        for restart in (False, True)
    }
    assert_allclose(found[False], expected[1:])
    assert min(np.diff(found[True])) < 0


def test_the_race_of_k_fcfw() -> None:
    """[L] Figure 1b, reduced: k-FCFW wins against the published FISTA, and loses to the other."""
    data = make_k_support_logistic(250, 5000, 60, rng=0)
    X, k, tau = as_design(np.asfortranarray(data.X)), 100, 1e-3
    level = norms.KSupport(k).polar(X.scores(0.5 * data.y)) ** 2 / 250 / 9
    problem = {"loss": "logistic", "norm": norms.KSupport(k), "form": "squared"}
    problem |= {"level": level, "tau": tau, "tol": 1e-9}
    best = solve_sum(X, data.y, **problem).objective
    near = stopping.TargetObjective(best / 250 * (1 + 1e-4))
    published = FISTA(restart=False, iterations=1)
    runs = [
        solve_sum(X, data.y, solver=solver, stop=near, **problem).iterations
        for solver in (FISTA(iterations=1), KFCFW(), published)
    ]
    assert runs[0] < 0.8 * runs[1]
    assert runs[1] < 0.8 * runs[2]


def test_what_is_refused() -> None:
    X, y = np.eye(4), np.arange(4.0)
    with pytest.raises(ValueError, match="step_size must be None or one of"):
        solve(X, y, alpha=0.1, solver=FISTA(step_size="long"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="step_size='backtracking'"):
        solve(X, y, alpha=0.1, loss="poisson", solver=FISTA(restart=False))
    other = FISTA(restart=False, step_size="backtracking")
    assert solve(X, y, alpha=0.1, loss="poisson", solver=other).status is Status.CONVERGED
