"""Levels of least squares that are solved together: the solutions of the levels one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from atomlearn import designs, losses, norms, paths, solve
from atomlearn.core import CachedBlock
from atomlearn.core.paths import ahead
from atomlearn.problem import Problem, Regularizer


def problem_of(
    n: int, p: int, rho: float, seed: int, weighted: bool, intercept: bool
) -> tuple[Problem, CachedBlock]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 3.0 * intercept
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * X[:, j]
    y = X[:, :5] @ rng.standard_normal(5) + 0.5 * rng.standard_normal(n)
    weight = rng.uniform(0.5, 2.0, n) * (rng.random(n) > 0.2) if weighted else np.ones(n)
    block = CachedBlock(designs.as_design(np.asfortranarray(X)).gather(np.arange(p)))
    price = norms.L1(weights=rng.uniform(0.5, 2.0, p)) if weighted else norms.L1()
    penalty = Regularizer(price, "penalized", 1.0)
    settings = {"fit_intercept": intercept, "sample_weight": weight / weight.sum()}
    return Problem.build(block, y, losses.Squared(), penalty, **settings), block


@pytest.mark.parametrize(("n", "p", "rho"), [(80, 30, 0.0), (40, 120, 0.5), (60, 200, 0.95)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_all_levels_at_once(n: int, p: int, rho: float, weighted: bool, intercept: bool) -> None:
    problem, block = problem_of(n, p, rho, n, weighted, intercept)
    assert ahead.can_solve_ahead(problem, block)
    top = paths.largest_useful_alpha(problem)
    levels = np.geomspace(0.9 * top, 0.05 * top, 20)
    points = ahead.solved_ahead(problem, block, levels, None, 1e-9)
    assert len(points) == levels.size
    for level, point in zip(levels, points, strict=True):
        found = solve(
            block.dense(), problem.y, norm=problem.regularizer.norm, alpha=level, tol=1e-10,
            fit_intercept=intercept, sample_weight=problem.weight,
        )  # fmt: skip
        assert point.objective == pytest.approx(found.objective, rel=1e-8)
        coef = np.zeros(p)
        coef[point.positions] = point.weights
        np.testing.assert_allclose(
            point.prediction,
            block.dense() @ coef + point.shift,
            atol=1e-9 * np.abs(problem.y).max(),
        )
        assert point.reference == pytest.approx(level, rel=1e-6)


def test_a_start_and_a_working_set_are_kept() -> None:
    problem, block = problem_of(50, 150, 0.3, 1, False, True)
    top = paths.largest_useful_alpha(problem)
    levels = np.geomspace(0.9 * top, 0.1 * top, 20)
    whole = ahead.solved_ahead(problem, block, levels, None, 1e-9)
    first = ahead.solved_ahead(problem, block, levels[:9], None, 1e-9)
    rest = ahead.solved_ahead(problem, block, levels[9:], first[-1], 1e-9)
    for one, other in zip(whole, [*first, *rest], strict=True):
        assert one.objective == pytest.approx(other.objective, rel=1e-8)


def test_distant_levels_take_few_columns_at_a_time() -> None:
    """The strong rule keeps nearly all columns where the next level is far away."""
    problem, block = problem_of(40, 3000, 0.7, 3, False, True)
    top = paths.largest_useful_alpha(problem)
    levels = np.geomspace(0.7 * top, 0.1 * top, 6)
    points = ahead.solved_ahead(problem, block, levels, None, 1e-9)
    assert len(points) == levels.size
    known, _ = block.growing_part(np.arange(1), problem.weight, None, True, ahead.GrowingGram)
    assert known.size <= 8 * problem.y.size


def test_levels_beyond_interpolation_are_left_to_a_master() -> None:
    problem, block = problem_of(20, 100, 0.0, 2, False, False)
    top = paths.largest_useful_alpha(problem)
    levels = np.geomspace(0.5 * top, 1e-9 * top, 30)
    points = ahead.solved_ahead(problem, block, levels, None, 1e-9)
    assert len(points) <= levels.size
    X, y = block.dense(), problem.y
    found = paths.path(X, y, alphas=levels, fit_intercept=False)
    assert found.converged


def test_copies_of_columns() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((60, 700)), 3, axis=1)
    y = X[:, ::30] @ rng.standard_normal(70) + rng.standard_normal(60)
    found = paths.path(X, y, n_alphas=30, tol=1e-8)
    assert found.converged


def test_what_is_not_solved_ahead() -> None:
    problem, block = problem_of(30, 10, 0.0, 3, False, True)
    assert not ahead.can_solve_ahead(replace(problem, loss=losses.Logistic()), block)
    assert not ahead.can_solve_ahead(replace(problem, tau=1.0), block)
    squared = Regularizer(norms.L1(), "squared", 1.0)
    assert not ahead.can_solve_ahead(replace(problem, regularizer=squared), block)
    groups = Regularizer(norms.Groups([[0, 1]]), "penalized", 1.0)
    assert not ahead.can_solve_ahead(replace(problem, regularizer=groups), block)
